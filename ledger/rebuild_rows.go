package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// hole is a range of unreadable keys, exclusive; a nil end is open.
type hole struct{ after, before []any }

// maxProbes limits how often an unreadable range is split and read again. Each
// read costs a descent of the tree.
const maxProbes = 4000

// taker copies the rows of one table from one source.
type taker struct {
	r      *rebuilder
	from   source
	t      table
	cols   []string
	insert *sql.Stmt
	probes int
	took   int
	// refused counts rows that were not copied: they already exist, or the
	// schema forbids them
	refused int
	first   error // error of the first refused row
}

// take copies what is readable in the holes, and returns the remaining ones.
func (r *rebuilder) take(ctx context.Context, from source, t table, holes []hole, count map[string]int) (left []hole, err error) {
	cols, err := from.common(ctx, t)
	if err != nil || len(cols) == 0 {
		return holes, nil // a source whose schema cannot be read has nothing
	}
	k := &taker{r: r, from: from, t: t, cols: cols}
	names, marks := quotedAll(cols), strings.TrimSuffix(strings.Repeat("?, ", len(cols)), ", ")
	if t.rowid() {
		names, marks = names+", rowid", marks+", ?"
	}
	k.insert, err = r.out.PrepareContext(ctx, fmt.Sprintf("INSERT OR IGNORE INTO %s(%s) VALUES (%s)", quoted(t.name), names, marks))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, k.insert.Close()) }()
	for _, h := range holes {
		rest, err := k.hole(ctx, h)
		if err != nil {
			return nil, err
		}
		left = append(left, rest...)
	}
	count[t.name] += k.took
	if k.first != nil || k.refused > 0 && from.damaged {
		r.res.miss("%s: %d invalid rows were left out", t.name, max(k.refused, 1))
	}
	return left, nil
}

// hole reads a range from its beginning, then from its end, and halves what is
// between, until it is read or too small.
func (k *taker) hole(ctx context.Context, h hole) ([]hole, error) {
	last, bad, err := k.scan(ctx, h, false)
	if err != nil || !bad {
		return nil, err
	}
	if last != nil {
		h.after = last
	}
	first, bad, err := k.scan(ctx, h, true)
	if err != nil || !bad {
		return nil, err
	}
	if first != nil {
		h.before = first
	}
	if !k.t.rowid() || k.probes > maxProbes {
		return []hole{h}, nil
	}
	lo, okLo := bound(h.after, 0)
	hi, okHi := bound(h.before, lo+1<<16)
	if !okLo || !okHi || hi-lo < 2 {
		return []hole{h}, nil
	}
	mid := lo + (hi-lo)/2
	// The row in the middle belongs to the first half.
	a, err := k.hole(ctx, hole{h.after, []any{mid + 1}})
	if err != nil {
		return nil, err
	}
	b, err := k.hole(ctx, hole{[]any{mid}, h.before})
	return append(a, b...), err
}

// bound returns an end of a range of row numbers.
func bound(end []any, otherwise int64) (int64, bool) {
	if end == nil {
		return otherwise, true
	}
	n, ok := end[0].(int64)
	return n, ok
}

// scan reads a range in one direction, as far as possible. bad reports that it
// could not be read to its end; last is the key of the last row.
func (k *taker) scan(ctx context.Context, h hole, back bool) (last []any, bad bool, err error) {
	k.probes++
	rows, err := k.query(ctx, h, back)
	if err != nil {
		return nil, true, ctx.Err()
	}
	defer func() { _ = rows.Close() }() // only read, so the error does not matter
	width := len(k.t.key)
	vals := make([]any, width+len(k.cols))
	ptrs := make([]any, len(vals))
	for i := range vals {
		ptrs[i] = &vals[i]
	}
	for rows.Next() {
		if err := rows.Scan(ptrs...); err != nil {
			return last, true, ctx.Err()
		}
		last = append([]any(nil), vals[:width]...)
		args := append([]any(nil), vals[width:]...)
		if k.t.rowid() {
			args = append(args, vals[0])
		}
		n, err := k.insert.ExecContext(ctx, args...)
		switch {
		case err == nil:
			if one, _ := n.RowsAffected(); one > 0 {
				k.took++
			} else {
				k.refused++
			}
		case ctx.Err() != nil || isFull(err):
			return nil, false, err
		case k.first == nil:
			k.first = err
		}
	}
	err = rows.Err()
	return last, err != nil, ctx.Err()
}

func (k *taker) query(ctx context.Context, h hole, back bool) (*sql.Rows, error) {
	key := strings.Join(k.t.key, ", ")
	if !k.t.rowid() {
		key = quotedAll(k.t.key)
	}
	q := "SELECT " + key + ", " + quotedAll(k.cols) + " FROM " + quoted(k.t.name) + " NOT INDEXED"
	marks := "(" + strings.TrimSuffix(strings.Repeat("?, ", len(k.t.key)), ", ") + ")"
	var args []any
	word := " WHERE "
	for _, end := range []struct {
		key []any
		op  string
	}{{h.after, " > "}, {h.before, " < "}} {
		if end.key != nil {
			q += word + "(" + key + ")" + end.op + marks
			args = append(args, end.key...)
			word = " AND "
		}
	}
	dir := ""
	if back {
		dir = " DESC"
	}
	q += " ORDER BY " + strings.Join(strings.Split(key, ", "), dir+", ") + dir
	return k.from.conn.QueryContext(ctx, q, args...)
}
