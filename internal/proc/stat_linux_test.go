package proc

import (
	"strings"
	"testing"
)

func TestInfo(t *testing.T) {
	t.Parallel()
	rest := " S 1 20 20 34816 77 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2"
	for _, c := range []struct {
		line string
		want info
		bad  bool
	}{
		{line: "12 (cat)" + rest, want: info{pid: 12, ppid: 1, pgrp: 20, tpgid: 77, start: 987654}},
		{line: "12 (a) b (c) 1 2)" + rest, want: info{pid: 12, ppid: 1, pgrp: 20, tpgid: 77, start: 987654}},
		{line: "12 ()\n) Z 1 2)" + rest, want: info{pid: 12, ppid: 1, pgrp: 20, tpgid: 77, start: 987654}},
		{line: "12 (x) Z" + rest[2:], want: info{pid: 12, ppid: 1, pgrp: 20, tpgid: 77, start: 987654, dead: true}},
		{line: "12 (x) Z" + strings.Replace(rest[2:], " 20 0 1 ", " 20 0 3 ", 1), want: info{pid: 12, ppid: 1, pgrp: 20, tpgid: 77, start: 987654}},
		{line: "12 (x) X" + rest[2:], want: info{pid: 12, ppid: 1, pgrp: 20, tpgid: 77, start: 987654, dead: true}},
		{line: "", bad: true},
		{line: "12 (x", bad: true},
		{line: "12 (x) S 1 2", bad: true},
		{line: "12 (x) S one" + rest[4:], bad: true},
	} {
		got, err := infoOf([]byte(c.line))
		if (err != nil) != c.bad || !c.bad && got != c.want {
			t.Errorf("infoOf(%q) = %+v, %v; want %+v", c.line, got, err, c.want)
		}
	}
}
