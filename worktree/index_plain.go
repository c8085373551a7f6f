package worktree

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
)

// plainEntries reads the entries of an index file without git, as gitformat-index(5)
// describes it. It returns false whenever git might find others or interpret
// them differently; then git decides.
//
// A plain index is of version 2, which has no skip-worktree or intent-to-add
// marks, and has no assume-unchanged marks either. It contains all its entries
// (a shared or a sparse index has an extension that git must know), and ends
// with the SHA-1 of what is before.
func plainEntries(path string) ([]entry, bool) {
	const head, fixed, marks = 12, 62, 0x8000 | 0x4000
	data, err := os.ReadFile(path)
	if err != nil || len(data) < head+sha1.Size {
		return nil, false
	}
	body, sum := data[:len(data)-sha1.Size], data[len(data)-sha1.Size:]
	if string(body[:8]) != "DIRC\x00\x00\x00\x02" || sha1.Sum(body) != [sha1.Size]byte(sum) {
		return nil, false
	}
	count, rest := binary.BigEndian.Uint32(body[8:]), body[head:]
	if int(count) > len(rest)/(fixed+2) {
		return nil, false
	}
	list := make([]entry, 0, count)
	for range count {
		if len(rest) < fixed {
			return nil, false
		}
		flags := binary.BigEndian.Uint16(rest[fixed-2:])
		n := bytes.IndexByte(rest[fixed:], 0)
		size := (fixed + n + 8) &^ 7 // at least one NUL ends the path
		if flags&marks != 0 || n < 1 || min(n, 0xfff) != int(flags&0xfff) || size > len(rest) {
			return nil, false
		}
		e := entry{
			flag:  "H",
			mode:  fmt.Sprintf("%06o", binary.BigEndian.Uint32(rest[24:])),
			sha:   hex.EncodeToString(rest[40 : fixed-2]),
			stage: string('0' + rune(flags>>12&3)),
			path:  string(rest[fixed : fixed+n]),
		}
		if e.stage != "0" {
			e.flag = "M"
		}
		list, rest = append(list, e), rest[size:]
	}
	for len(rest) > 0 { // extensions; git may ignore those that begin with a capital letter
		if len(rest) < 8 || rest[0] < 'A' || rest[0] > 'Z' {
			return nil, false
		}
		size := uint64(binary.BigEndian.Uint32(rest[4:])) + 8
		if size > uint64(len(rest)) {
			return nil, false
		}
		rest = rest[size:]
	}
	return list, true
}
