package control

import (
	"context"
	"encoding/json"
	"errors"

	"onsale/internal/catalog"
	"onsale/internal/fold"
)

// foldPage is how many events are folded anew before the next are read.
const foldPage = 200

// An unfolded is an event whose folded columns another program wrote.
type unfolded struct {
	event catalog.Event
	show  catalog.Show
}

// foldAnew brings the folded columns up to what fold.Text answers today, as a migration in SQL cannot. It is done when a
// database is opened, and may stop half way or be done by two at once: each row says who folded it.
func (d *DB) foldAnew(ctx context.Context) error {
	for after := int64(0); ; {
		all, err := rows(ctx, d, func(scan func(...any) error) (u unfolded, err error) {
			var event, show []byte
			if err = scan(&event, &show); err == nil {
				err = errors.Join(json.Unmarshal(event, &u.event), json.Unmarshal(show, &u.show))
			}
			return u, err
		}, `SELECT e.document, s.document FROM {events} e JOIN {shows} s ON s.id = e.show_id WHERE e.fold_version < $1 AND e.id > $2
			ORDER BY e.id LIMIT $3`, fold.Version, after, foldPage)
		if err != nil || len(all) == 0 {
			return wrap("reading events to be folded", err)
		}
		for i := range all {
			e := &all[i].event
			after = int64(e.ID)
			// One that was changed meanwhile is folded already.
			err := d.exec(ctx, `UPDATE {events} SET city = $2, search = $3, fold_version = $4 WHERE id = $1 AND fold_version < $4 AND version = $5`,
				int64(e.ID), folded(e.Venue.City), folded(catalog.SearchText(e, &all[i].show)), fold.Version, e.Version)
			if err != nil {
				return wrap("folding an event", err)
			}
		}
	}
}

// folded is how a text is stored that is looked for, and how it is looked for.
func folded(text string) string { return catalog.Fold(fold.Text(text)) }
