package postgres

import (
	"slices"
	"strconv"
	"strings"
)

// A rowset is rows to be written by one statement: its columns travel as arrays, and the statement picks element n of each.
// Columns of fixed size are picked by subscript, which costs a fifth of unnest; texts that are mostly the same are sent
// once each, with the number of its text for every row; other texts are unnested, since a subscript has to walk to them.
// The statement's text depends on the columns alone, never on how many rows there are.
type rowset struct {
	w     *writer
	table string
	n     int
	args  []any

	names  []string // of the columns to be set
	values []string // the expressions for them
	where  []string // of an update: what a row must be
	texts  []string // the arguments that are unnested
}

// rowset begins a set of n rows for a table.
func (w *writer) rowset(table string, n int) *rowset { return &rowset{w: w, table: table, n: n} }

// arg adds an argument and gives its place.
func (r *rowset) arg(v any) string {
	r.args = append(r.args, v)
	return "$" + strconv.Itoa(len(r.args))
}

func each[T any](n int, value func(int) T) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = value(i)
	}
	return list
}

func (r *rowset) set(column, value string) *rowset {
	r.names, r.values = append(r.names, column), append(r.values, value)
	return r
}

func (r *rowset) match(column, value string) *rowset {
	r.where = append(r.where, "t."+column+" = "+value)
	return r
}

func (r *rowset) int64s(value func(int) int64) string {
	return "(" + r.arg(each(r.n, value)) + "::bigint[])[k.n::integer]"
}

func (r *rowset) int32s(value func(int) int32) string {
	return "(" + r.arg(each(r.n, value)) + "::integer[])[k.n::integer]"
}

func (r *rowset) int16s(value func(int) int16) string {
	return "(" + r.arg(each(r.n, value)) + "::smallint[])[k.n::integer]"
}

// big, mid and small are columns of 8, 4 and 2 bytes.
func (r *rowset) big(column string, value func(int) int64) *rowset {
	return r.set(column, r.int64s(value))
}

func (r *rowset) mid(column string, value func(int) int32) *rowset {
	return r.set(column, r.int32s(value))
}

func (r *rowset) small(column string, value func(int) int16) *rowset {
	return r.set(column, r.int16s(value))
}

// yes is a column of yes (1) and no (0).
func (r *rowset) yes(column string, value func(int) bool) *rowset {
	return r.small(column, func(i int) int16 { return bit(value(i)) })
}

// word is a column of texts of which most rows have the same few.
func (r *rowset) word(column string, value func(int) string) *rowset {
	var words []string
	last, place := "", int16(0)
	places := each(r.n, func(i int) int16 {
		if v := value(i); place == 0 || v != last {
			k := slices.Index(words, v)
			if k < 0 {
				words = append(words, v)
				k = len(words) - 1
			}
			last, place = v, int16(k+1)
		}
		return place
	})
	return r.set(column, "("+r.arg(words)+"::text[])["+"("+r.arg(places)+"::smallint[])[k.n::integer]]")
}

// text is a column of texts of which every row has its own.
func (r *rowset) text(column string, value func(int) string) *rowset {
	return r.set(column, r.own(value))
}

func (r *rowset) own(value func(int) string) string {
	return r.unnest(r.arg(each(r.n, value)) + "::text[]")
}

func (r *rowset) ownBytes(value func(int) []byte) string {
	return r.unnest(r.arg(each(r.n, value)) + "::bytea[]")
}

func (r *rowset) unnest(arg string) string {
	r.texts = append(r.texts, arg)
	return "k.t" + strconv.Itoa(len(r.texts))
}

// from gives k: the rows' numbers n, and the texts.
func (r *rowset) from() string {
	if len(r.texts) == 0 {
		return "generate_series(1, " + r.arg(int32(r.n)) + "::integer) AS k(n)"
	}
	var names strings.Builder
	for i := range r.texts {
		names.WriteString("t" + strconv.Itoa(i+1) + ", ")
	}
	return "unnest(" + strings.Join(r.texts, ", ") + ") WITH ORDINALITY AS k(" + names.String() + "n)"
}

// insert queues the insert of all rows, in their order; after is what follows, such as ON CONFLICT.
func (r *rowset) insert(after string) {
	if r.n == 0 {
		return
	}
	from := r.from()
	r.w.exec("INSERT INTO shard."+r.table+" ("+strings.Join(r.names, ", ")+") SELECT "+strings.Join(r.values, ", ")+" FROM "+from+after, r.args...)
}

// update queues the update of the rows that match; broken is the error where one does not.
func (r *rowset) update(broken func() error) {
	if r.n == 0 {
		return
	}
	from := r.from()
	var set strings.Builder
	for i, name := range r.names {
		if i > 0 {
			set.WriteString(", ")
		}
		set.WriteString(name + " = " + r.values[i])
	}
	r.w.must(r.n, broken, "UPDATE shard."+r.table+" t SET "+set.String()+" FROM "+from+" WHERE "+strings.Join(r.where, " AND "), r.args...)
}
