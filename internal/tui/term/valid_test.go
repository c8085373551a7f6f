package term

import (
	"testing"
	"unicode/utf8"

	"github.com/gdamore/tcell/v3"
)

// pieces is a terminal that delivers one piece per read.
type pieces struct {
	tcell.Tty
	list []string
}

func (p *pieces) Read(b []byte) (n int, err error) {
	if len(p.list) > 0 {
		n = copy(b, p.list[0])
		p.list = p.list[1:]
	}
	return n, nil
}

// The key sequences of Windows terminals are removed, but no other "_".
func TestNoWinKeys(t *testing.T) {
	t.Parallel()
	var c csi
	got := ""
	for _, s := range []string{"a_\x1b_\x1b[_", "\x1b[0;0;27;1;0;1_\x1b[6", "5_\u009b65;1_", "\x1b[1A_\x1b[1;2\x1b_", "\x1b", "[1", "_"} {
		b := []byte(s)
		c.noWinKeys(b)
		got += string(b)
	}
	if want := "a_\x1b_\x1b[_" + "\x1b[0;0;27;1;0;1g\x1b[65g\u009b65;1g" + "\x1b[1A_\x1b[1;2\x1b_" + "\x1b[1g"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}

// Bytes that are not UTF-8 are dropped, and a character may come in pieces.
func TestValid(t *testing.T) {
	t.Parallel()
	v := newValid(&pieces{list: []string{"a\xff", "\xfe", "\xc3", "\xa9\xe6\x95", "\xb0b", "\xe2\x82", "c\x80\x9b", "\xf0\x9f", "\x98", "\x80", "\uFFFD", "\xed\xa0\x80d"}})
	got, buf := "", make([]byte, 128)
	for {
		n, err := v.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		if !utf8.Valid(buf[:n]) {
			t.Errorf("%q", buf[:n])
		}
		got += string(buf[:n])
	}
	if want := "aé数bc😀\uFFFDd"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}
