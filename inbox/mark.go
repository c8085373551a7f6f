package inbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
)

// Unread returns the messages not marked as read, oldest first. It reads only
// what follows the entries that it has already seen read.
//
// It takes no lock while the file is as it was when nothing in it was unread.
func (b *Box) Unread(ctx context.Context) ([]Entry, error) {
	if b.stillQuiet() {
		return nil, nil
	}
	var out []Entry
	err := b.hold(ctx, "read", false, false, func(h *holding) error {
		v, err := h.view()
		if err != nil {
			return err
		}
		out = v.unread()
		h.box.remember(v)
		h.box.rememberQuiet(v, out)
		return nil
	})
	return out, err
}

// Consume returns the unread messages that keep accepts (nil accepts all),
// oldest first and at most max (0: no limit), and marks exactly these as read
// under the same hold of the lock: two consumers never get the same message. If
// it returns an error it returned no message.
//
// If the caller dies before using them, nothing is lost that the ledger has.
func (b *Box) Consume(ctx context.Context, max int, keep func(Entry) bool) ([]Entry, error) {
	var out []Entry
	err := b.hold(ctx, "read", false, false, func(h *holding) error {
		v, err := h.view()
		if err != nil {
			return err
		}
		var take []Entry
		var marks []int
		for _, e := range v.unread() {
			if max > 0 && len(take) == max {
				break
			}
			if keep == nil || keep(e) {
				take = append(take, e)
				marks = append(marks, e.Index-v.first)
			}
		}
		if err := h.mark(v, marks); err != nil {
			return err
		}
		out = take
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Read = true
	}
	return out, nil
}

// MarkRead marks the entries with these keys (see Entry.Key) as read and
// returns how many were unread.
func (b *Box) MarkRead(ctx context.Context, keys ...string) (int, error) {
	set := make(map[string]bool, len(keys))
	for _, k := range keys {
		set[k] = true
	}
	return b.markWhere(ctx, func(e Entry) bool { return set[e.Key()] })
}

// MarkAllRead marks every entry currently in the file. Prefer Consume:
// MarkAllRead also marks entries that arrived after the caller last read the
// file.
func (b *Box) MarkAllRead(ctx context.Context) (int, error) {
	return b.markWhere(ctx, func(Entry) bool { return true })
}

func (b *Box) markWhere(ctx context.Context, match func(Entry) bool) (int, error) {
	taken, err := b.Consume(ctx, 0, match)
	return len(taken), err
}

// Prune removes the oldest read messages except for keepRead of them, and
// returns how many it removed. Unread messages, and values that are not
// messages, stay. Under the lock it calls before, if not nil, with the messages
// to be removed; an error from before keeps them all.
func (b *Box) Prune(ctx context.Context, keepRead int, before func(gone []Entry) error) (int, error) {
	gone := 0
	err := b.hold(ctx, "prune", false, true, func(h *holding) error {
		data, _, err := h.load()
		if err != nil {
			return err
		}
		elems, bad := scanArray(data)
		if bad != nil {
			return h.repair(data, elems, bad)
		}
		n := -max(keepRead, 0)
		for _, e := range elems {
			if e.done {
				n++
			}
		}
		if n <= 0 {
			return nil
		}
		var kept, drop []element
		for _, e := range elems {
			if e.done && len(drop) < n {
				drop = append(drop, e)
			} else {
				kept = append(kept, e)
			}
		}
		if before != nil {
			if err := before(decodeAll(data, drop)); err != nil {
				return err
			}
		}
		if err := h.replace(texts(data, kept), true); err != nil {
			return err
		}
		gone = n
		return nil
	})
	return gone, err
}

// mark sets the read mark of elements of v, in place if that cannot leave a
// half-written state, otherwise by replacing the file.
func (h *holding) mark(v *view, elems []int) error {
	if len(elems) == 0 {
		h.box.remember(v)
		return nil
	}
	if !v.canFlip(elems) {
		return h.markByRewrite(v, elems)
	}
	if err := h.stillHeld(); err != nil {
		return err
	}
	if err := h.flip(v, elems); err != nil {
		return err
	}
	h.box.remember(v)
	return nil
}

func (h *holding) flip(v *view, elems []int) (err error) {
	f, info, err := h.open(os.O_RDWR)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if !os.SameFile(info, v.info) {
		return errors.New("the file was replaced under the lock")
	}
	for _, i := range elems {
		e := &v.elems[i]
		if _, err := f.WriteAt([]byte("true "), v.off+int64(e.read.start)); err != nil {
			return err
		}
		copy(v.data[e.read.start:], "true ")
		e.done = true
	}
	return nil
}

func (h *holding) markByRewrite(v *view, elems []int) error {
	data, _, err := h.load()
	if err != nil {
		return err
	}
	all, bad := scanArray(data)
	if bad != nil {
		return h.repair(data, all, bad)
	}
	out := texts(data, all)
	for _, i := range elems {
		k := v.first + i
		out[k] = withRead(data, all[k])
	}
	return h.replace(out, true)
}

// withRead returns the text of an element with its read mark set.
func withRead(data []byte, e element) []byte {
	text := data[e.start:e.end]
	if e.read.end > 0 {
		return slices.Concat(data[e.start:e.read.start], []byte("true"), data[e.read.end:e.end])
	}
	body := bytes.TrimRight(text[:len(text)-1], " \t\r\n")
	if len(body) > 1 {
		return slices.Concat(body, []byte(`,"read":true}`))
	}
	return []byte(`{"read":true}`)
}
