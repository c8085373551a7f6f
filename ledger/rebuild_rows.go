package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// hole is a range of keys whose rows could not be read, exclusive; a nil end is
// open.
type hole struct {
	after, before []any
	invalid       bool // they could be, and are not as they were written
}

// maxProbes limits how often an unreadable range is split and read again. Each
// read costs a descent of the tree.
const maxProbes = 4000

// taker copies the rows of one table from one source.
type taker struct {
	r      *rebuilder
	from   source
	t      table
	cols   []string
	order  keyOrder // of the damaged file
	insert *sql.Stmt
	probes int
	took   int
	// invalid counts the rows that the schema forbids
	invalid int
	doubted [][]any // arguments of insert for rows that other sources may have undamaged
}

// take copies what is readable in the holes, and returns the remaining ones. Of
// the damaged file it leaves rows that may be damaged to keepDoubted.
func (r *rebuilder) take(ctx context.Context, from source, t table, holes []hole, count map[string]int) (k *taker, left []hole, err error) {
	k = &taker{r: r, from: from, t: t}
	k.cols, err = from.common(ctx, t)
	if err != nil || len(k.cols) == 0 {
		return k, holes, nil // a source whose schema cannot be read has nothing
	}
	if from.damaged {
		k.order = from.order(ctx, t)
	}
	if err := k.prepare(ctx); err != nil {
		return k, nil, err
	}
	defer func() { err = errors.Join(err, k.insert.Close()) }()
	for _, h := range holes {
		rest, err := k.hole(ctx, h)
		if err != nil {
			return k, nil, err
		}
		left = append(left, rest...)
	}
	count[t.name] += k.took
	if k.invalid > 0 {
		r.res.miss("%s: %d invalid rows were left out", t.name, k.invalid)
	}
	return k, left, nil
}

func (k *taker) prepare(ctx context.Context) (err error) {
	names, marks := quotedAll(k.cols), strings.TrimSuffix(strings.Repeat("?, ", len(k.cols)), ", ")
	if k.t.rowid() {
		names, marks = names+", rowid", marks+", ?"
	}
	k.insert, err = k.r.out.PrepareContext(ctx, fmt.Sprintf("INSERT OR IGNORE INTO %s(%s) VALUES (%s)", quoted(k.t.name), names, marks))
	return err
}

// keepDoubted copies the doubted rows that no other source has.
func (k *taker) keepDoubted(ctx context.Context) (err error) {
	if len(k.doubted) == 0 {
		return nil
	}
	if err := k.prepare(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.insert.Close()) }()
	kept := 0
	for _, args := range k.doubted {
		added, _, err := k.put(ctx, args)
		if err != nil {
			return err
		}
		if added {
			kept++
		}
	}
	k.r.res.Rows[k.t.name] += kept
	if kept > 0 {
		k.r.res.miss("%s: %d rows may be damaged", k.t.name, kept)
	}
	return nil
}

// put inserts a row unless it is there or the schema forbids it. broken reports
// that one of its values is to blame. An error is one of the new ledger.
func (k *taker) put(ctx context.Context, args []any) (added, broken bool, err error) {
	res, err := k.insert.ExecContext(ctx, args...)
	if err != nil {
		if ctx.Err() != nil || isFull(err) {
			return false, false, err
		}
		return false, true, nil
	}
	n, err := res.RowsAffected()
	return n > 0, false, err
}

// hole reads a range from its beginning, then from its end, and halves what is
// between, until it is read or too small.
func (k *taker) hole(ctx context.Context, h hole) (left []hole, err error) {
	s, left, err := k.pass(ctx, h, false)
	if err != nil || !s.bad {
		return left, err
	}
	if s.last != nil {
		h.after = s.last
	}
	s, rest, err := k.pass(ctx, h, true)
	left = append(left, rest...)
	if err != nil || !s.bad {
		return left, err
	}
	if s.last != nil {
		h.before = s.last
	}
	if !k.t.rowid() || k.probes > maxProbes {
		return append(left, h), nil
	}
	lo, okLo := bound(h.after, 0)
	hi, okHi := bound(h.before, lo+1<<16)
	if !okLo || !okHi || hi-lo < 3 { // one row at most
		return append(left, h), nil
	}
	mid := lo + (hi-lo)/2
	// The row in the middle belongs to the first half.
	for _, half := range []hole{{after: h.after, before: []any{mid + 1}}, {after: []any{mid}, before: h.before}} {
		rest, err := k.hole(ctx, half)
		if err != nil {
			return nil, err
		}
		left = append(left, rest...)
	}
	return left, nil
}

// pass scans a range in one direction, and returns what is missing of it but
// for what follows an error. A damaged page above the rows may have led past
// some of them to the first one, so what is before that is read towards the
// start.
func (k *taker) pass(ctx context.Context, h hole, back bool) (s *scan, left []hole, err error) {
	s, err = k.scan(ctx, h, back)
	left = s.holes
	before, ok := s.start()
	if err != nil || !k.from.damaged || !ok {
		return s, left, err
	}
	other, err := k.scan(ctx, before, !back)
	left = append(left, other.holes...)
	if !other.bad {
		return s, left, err
	}
	switch {
	case other.last == nil:
	case back:
		before.after = other.last
	default:
		before.before = other.last
	}
	return s, append(left, before), err
}

// bound returns an end of a range of row numbers.
func bound(end []any, otherwise int64) (int64, bool) {
	if end == nil {
		return otherwise, true
	}
	n, ok := end[0].(int64)
	return n, ok
}

// scan reads a range in one direction, as far as possible.
func (k *taker) scan(ctx context.Context, h hole, back bool) (*scan, error) {
	k.probes++
	s := &scan{k: k, from: h.after, to: h.before, back: back}
	if back {
		s.from, s.to = h.before, h.after
	}
	rows, err := k.query(ctx, h, back)
	if err != nil {
		s.bad = true
		return s, ctx.Err()
	}
	defer func() { _ = rows.Close() }() // only read, so the error does not matter
	width := len(k.t.key)
	for rows.Next() {
		vals := make([]any, width+len(k.cols))
		ptrs := make([]any, len(vals))
		for i := range vals {
			ptrs[i] = &vals[i]
		}
		if err := rows.Scan(ptrs...); err != nil {
			s.bad = true
			break
		}
		args := vals[width:]
		if k.t.rowid() {
			args = append(args[:len(args):len(args)], vals[0])
		}
		if over, err := s.row(ctx, vals[:width:width], args); err != nil || over {
			return s, err
		}
	}
	s.bad = s.bad || rows.Err() != nil
	if err := ctx.Err(); err != nil {
		return s, err
	}
	return s, s.end(ctx)
}

// query reads a range in one direction. The damaged file is read on after the
// end of the range, which scan must see to know whether it was reached.
func (k *taker) query(ctx context.Context, h hole, back bool) (*sql.Rows, error) {
	if k.from.damaged && back {
		h.after = nil
	} else if k.from.damaged {
		h.before = nil
	}
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
