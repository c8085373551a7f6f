package ledger

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
)

// A damaged page may be read without an error: a sector of zeros in it is rows
// without a key or a value, or texts that end in zeros. So the rows of the
// damaged file are checked. Where one cannot be as it was written, the rows next
// to it are the ends of a hole, as if it were unreadable.

// scan is one reading of a range of a table, in one direction.
type scan struct {
	k        *taker
	from, to []any // ends of the range, in this direction
	back     bool

	first []any  // key of the first row that was copied
	last  []any  // of the last one
	held  *inRow // follows it, and is copied once the next row shows that it is in order
	gap   bool   // rows are missing after these two
	holes []hole // without the one after last if bad
	bad   bool   // an error ended it before the end of the range
}

// inRow is a row of a source.
type inRow struct {
	key, args []any
	gap       bool // rows are missing before it
}

// row takes in the next row. over reports that the range ends before it.
func (s *scan) row(ctx context.Context, key, args []any) (over bool, err error) {
	row := &inRow{key: key, args: args}
	if !s.k.from.damaged {
		s.last = key
		_, err := s.put(ctx, row)
		return false, err
	}
	before := s.last
	if before == nil {
		before = s.from
	}
	follows := before == nil || s.beyond(key, before)
	switch {
	case !validKey(s.k.t, key):
		s.k.invalid++
		s.gap = true
		return false, nil
	case !follows:
		s.doubt(row)
		return false, nil
	case s.held != nil && !s.beyond(key, s.held.key): // one of the two is not in order
		s.doubt(s.held)
		s.doubt(row)
		s.held = nil
		return false, nil
	}
	if over, err = s.release(ctx); over || err != nil {
		return over, err
	}
	row.gap, s.gap = s.gap, false
	s.held = row
	return false, nil
}

// release copies the held row. over reports that it is not in the range any more.
func (s *scan) release(ctx context.Context) (over bool, err error) {
	row := s.held
	if s.held = nil; row == nil {
		return false, nil
	}
	if s.over(row.key) {
		if row.gap {
			s.hole(s.to)
		}
		return true, nil
	}
	if slices.ContainsFunc(row.args, hasZero) {
		s.doubt(row)
		return false, nil
	}
	added, err := s.put(ctx, row)
	if err != nil {
		return false, err
	}
	if !added {
		s.gap = true
		return false, nil
	}
	if row.gap {
		s.hole(row.key)
	}
	if s.first == nil {
		s.first = row.key
	}
	s.last = row.key
	return false, nil
}

// put copies a row, and reports whether that was possible.
func (s *scan) put(ctx context.Context, row *inRow) (added bool, err error) {
	added, broken, err := s.k.put(ctx, row.args)
	switch {
	case added:
		s.k.took++
	case err == nil && (broken || s.k.from.damaged): // a row of another source may be there already
		s.k.invalid++
	}
	return added, err
}

// doubt leaves a row to other sources.
func (s *scan) doubt(row *inRow) {
	if !s.over(row.key) {
		s.k.doubted = append(s.k.doubted, row.args)
	}
	s.gap = true
}

// end is called when no row follows. If that is due to an error, what is
// missing before it belongs to what is unreadable.
func (s *scan) end(ctx context.Context) error {
	over, err := s.release(ctx)
	if err != nil {
		return err
	}
	if over {
		s.bad = false
	} else if s.gap && !s.bad {
		s.hole(s.to)
	}
	return nil
}

// hole records that rows are missing between the last one and a key.
func (s *scan) hole(at []any) {
	h := hole{after: s.last, before: at, invalid: true}
	if s.last == nil {
		h.after = s.from
	}
	if s.back {
		h.after, h.before = h.before, h.after
	}
	s.holes = append(s.holes, h)
}

// start returns the part of the range that was passed over on the way to the
// first row, and whether there is one.
func (s *scan) start() (h hole, ok bool) {
	if s.from == nil || s.first == nil && s.bad {
		return h, false
	}
	h = hole{after: s.from, before: s.first}
	if s.first == nil {
		h.before = s.to
	}
	if s.back {
		h.after, h.before = h.before, h.after
	}
	return h, true
}

// over reports whether a key is not in the range any more.
func (s *scan) over(key []any) bool {
	return s.to != nil && !s.beyond(s.to, key)
}

// beyond reports whether a comes after b in the direction of the scan.
func (s *scan) beyond(a, b []any) bool {
	n := s.k.order.compare(a, b)
	if s.back {
		n = -n
	}
	return n > 0
}

// hasZero reports whether a value may have been overwritten with zeros.
func hasZero(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.IndexByte(v, 0) >= 0
	case []byte:
		return bytes.IndexByte(v, 0) >= 0
	}
	return false
}

// validKey reports whether a row can have the key: rows are numbered from 1,
// and no part of a key is NULL.
func validKey(t table, key []any) bool {
	for _, part := range key {
		switch v := part.(type) {
		case int64:
			if t.rowid() && v < 1 {
				return false
			}
		case string:
		default:
			return false
		}
	}
	return true
}

// keyOrder has, for each part of a key, whether its case is ignored.
type keyOrder []bool

// order returns the order of the source's rows.
func (s source) order(ctx context.Context, t table) keyOrder {
	order := make(keyOrder, len(t.key))
	for i, name := range t.key {
		var fold bool
		// Without an answer it is the order of most columns.
		if s.conn.QueryRowContext(ctx, `SELECT x.coll = 'NOCASE' FROM pragma_index_list(?) l, pragma_index_xinfo(l.name) x
			WHERE l.origin = 'pk' AND x.name = ?`, t.name, name).Scan(&fold) == nil {
			order[i] = fold
		}
	}
	return order
}

// compare compares two keys as SQLite does.
func (o keyOrder) compare(a, b []any) int {
	for i := range a {
		if n := o.comparePart(i, a[i], b[i]); n != 0 {
			return n
		}
	}
	return 0
}

func (o keyOrder) comparePart(i int, a, b any) int {
	n, isNumber := a.(int64)
	m, isToo := b.(int64)
	switch {
	case isNumber && isToo:
		return cmp.Compare(n, m)
	case isNumber:
		return -1
	case isToo:
		return 1
	}
	x, _ := a.(string)
	y, _ := b.(string)
	if o[i] {
		x, y = foldASCII(x), foldASCII(y)
	}
	return strings.Compare(x, y)
}

// foldASCII folds as NOCASE does, letters of ASCII only.
func foldASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
