package control

import "context"

// DeleteMeta forgets a named value. That there is none is no error.
func (d *DB) DeleteMeta(ctx context.Context, name string) error {
	return wrap("forgetting "+name, d.exec(ctx, `DELETE FROM {meta} WHERE name = $1`, name))
}
