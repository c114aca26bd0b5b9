package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"syscall"
	"testing"

	"onsale/internal/fault"
)

type sqlError string

func (e sqlError) Error() string    { return "sql " + string(e) }
func (e sqlError) SQLState() string { return string(e) }

func TestADatabaseThatIsAwayIsBusyAndNothingElseIs(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		err  error
		want fault.Code
	}{
		{fmt.Errorf("reading the hold: %w", refused), fault.Busy},
		{fault.Wrap(fault.Internal, refused), fault.Busy},
		{io.ErrUnexpectedEOF, fault.Busy},
		{syscall.EPIPE, fault.Busy},
		{sqlError("57P01"), fault.Busy},
		{sqlError("08006"), fault.Busy},
		{sqlError("42P01"), fault.Internal},
		{sqlError("23505"), fault.Internal},
		{errors.New("a row contradicts another"), fault.Internal},
		{fault.Wrap(fault.OutcomeUnknown, refused), fault.OutcomeUnknown},
		{fault.Wrap(fault.PaymentUnavailable, refused), fault.PaymentUnavailable},
		{fault.New(fault.HoldUnknown, ""), fault.HoldUnknown},
	} {
		r := &request{Request: httptest.NewRequest("GET", "/", nil)}
		if got := faultOf(r, c.err); got.Code != c.want {
			t.Errorf("%v is answered %s, want %s", c.err, got.Code, c.want)
		}
	}
}
