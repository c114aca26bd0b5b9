package app

import (
	"context"
	"log/slog"
)

type relay struct{}

func newRelay(Store, *slog.Logger) *relay { return &relay{} }

func (*relay) Run(ctx context.Context) { <-ctx.Done() }
func (*relay) Nudge()                  {}
func (*relay) Kinds() map[string]int64 { return nil }
