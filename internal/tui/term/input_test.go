package term

import (
	"strings"
	"testing"
	"time"
)

// told is what events tell, as text: keys by their names, pastes in brackets.
func told(all []Event) string {
	var words []string
	for _, e := range all {
		switch e.Kind {
		case Paste:
			words = append(words, "["+e.Text+"]")
		case Mouse:
			words = append(words, e.Key+"@"+string(rune('0'+e.X))+","+string(rune('0'+e.Y)))
		case Focus:
			words = append(words, map[bool]string{true: "focus", false: "blur"}[e.Focused])
		default:
			words = append(words, e.Key)
		}
	}
	return strings.Join(words, " ")
}

// TestInput checks what the bytes of terminals mean, whether they come at once or one at a time.
func TestInput(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[string]string{
		"aé数 Z":                                               "a é 数 space Z",
		"e\u0301😀":                                            "e \u0301 😀",
		"a\xffb\x80\x9bc\xed\xa0d":                            "a b c d", // no UTF-8
		"\u009bA\u0085":                                       "A",       // controls of one character
		"\r\t\x7f\x08\n\x03\x1a":                              "enter tab backspace backspace ctrl-j ctrl-c ctrl-z",
		"\x1b[A\x1b[B\x1bOC\x1b[D":                            "up down right left",
		"\x1b[H\x1b[F\x1b[1~\x1b[4~":                          "home end home end",
		"\x1b[5~\x1b[6~\x1b[3~":                               "pgup pgdn delete",
		"\x1b[Z\x1b[1;2A\x1b[1;5B":                            "backtab up down",
		"\x1b[1;3A\x1bx\x1b\x1b[Aq":                           "q", // with Alt
		"\x1b[99;5u\x1b[27;5;99~":                             "ctrl-c ctrl-c",
		"\x1b[11~\x1bOP\x1b[2~q":                              "q", // keys that are not used
		"\x1b[I\x1b[O":                                        "focus blur",
		"\x1b[<0;3;4M\x1b[<32;4;4M\x1b[<0;4;4m\x1b[<0;4;4m":   "left@2,3 drag@3,3 release@3,3",
		"\x1b[<64;1;1M\x1b[<65;1;2M\x1b[<2;1;1M\x1b[<1;1;1Mq": "wheel-up@0,0 wheel-down@0,1 right@0,0 q",
		"\x1b[<35;3;4Mq":                                      "q", // it moves with no button
		"\x1b[?62;4c\x1b[3;1Rq":                               "q", // answers that were not asked for
		"\x1b]11;rgb:0/0/0\x1b\\q":                            "q",
		"\x1bP1$r0m\x1b\\q\x1b]52;c;YQ==\aq":                  "q q",
		"\x1b[200~a\rb \tc\x1b[201~q":                         "[a\nb \tc] q",
		"\x1b\x1b[200~a\x1b\x1b[201~q":                        "esc [a] q",
		"\x1b[200~\x1b[201~q\x1b[201~":                        "[] q",
		"\x1b[65;30;97;1;0;1_q":                               "q",                                 // a terminal of Windows
		"\x1b[M !!\x1b[M#!!\x1b[M`!\"":                        "left@0,0 release@0,0 wheel-up@0,1", // a mouse as X10 has it
		"\x1bOM\x1b[97;2u\x1b[9;2u\x1b[97;3uq":                "enter A backtab q",
		"\x00\x1c\ufffdq":                                     "\ufffd q",
	} {
		var whole, pieces input
		now := time.Now()
		at := told(append(whole.events([]byte(bytes), now), whole.events(nil, now)...))
		if at != want {
			t.Errorf("%q: %q; want %q", bytes, at, want)
		}
		var all []Event
		for i := range len(bytes) {
			all = append(all, pieces.events([]byte(bytes[i:i+1]), now)...)
		}
		if one := told(append(all, pieces.events(nil, now)...)); one != want {
			t.Errorf("%q one at a time: %q; want %q", bytes, one, want)
		}
	}
}

// TestEsc checks that Esc is a key once nothing follows it, however often it is typed, and that a sequence of which
// the end never comes keeps nothing from being read.
func TestEsc(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct{ first, rest, then, want string }{
		{"\x1b", "esc", "q", "q"},
		{"\x1b\x1b", "esc esc", "q", "q"},
		{"\x1b\x1b\x1b", "esc esc esc", "q", "q"},
		{"\x1b[", "", "q", "q"},
		{"\x1b[1;", "", "q", "q"},
		{"\x1b]0;title", "", "q", "q"},
		{"\xe6\x95", "", "q", "q"},
	} {
		var in input
		if got := told(in.events([]byte(c.first), now)); got != "" {
			t.Errorf("%q: %q at once", c.first, got)
		}
		if got := told(in.events(nil, now)); got != c.rest {
			t.Errorf("%q: %q; want %q", c.first, got, c.rest)
		}
		if got := told(in.events([]byte(c.then), now)); got != c.want {
			t.Errorf("%q after %q: %q; want %q", c.then, c.first, got, c.want)
		}
	}
	var in input
	for i := 0; i < longestSequence; i += 64 {
		in.events([]byte("\x1b]0;"+strings.Repeat("x", 60)), now)
	}
	if len(in.rest) > longestSequence {
		t.Errorf("%d bytes are kept", len(in.rest))
	}
}

// TestPaste checks that a paste without an end mark is ended by Ctrl-c or Esc after a second without input, not
// before.
func TestPaste(t *testing.T) {
	t.Parallel()
	for key, name := range map[string]string{"\x03": "ctrl-c", "\x1b": "esc"} {
		var in input
		now := time.Now()
		read := func(s string) string { return told(append(in.events([]byte(s), now), in.events(nil, now)...)) }
		if got := read("\x1b[200~a\x1b[200~b"); got != "" {
			t.Errorf("%q", got)
		}
		now = now.Add(2 * time.Second)
		if got := read("c" + key); got != "" {
			t.Errorf("at once: %q", got)
		}
		now = now.Add(2 * time.Second)
		if got, want := read(key), "[abc] "+name; got != want {
			t.Errorf("after silence: %q; want %q", got, want)
		}
		if got := read("a"); got != "a" {
			t.Errorf("%q", got)
		}
	}
}

// FuzzInput checks that no input is kept for good, makes a key of a control character, or ends the program.
func FuzzInput(f *testing.F) {
	for _, s := range []string{"a\x1b[A", "\x1b[200~\x1b[201~", "\x1b[<0;1;1M", "\x1bP\x1b\\", "\x1b[M   ", "\xff\x1b[65;30;97;1;0;1_", "\x1b[;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;m"} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, cut uint8) {
		var in input
		now := time.Now()
		at := min(int(cut), len(b))
		all := in.events(b[:at:at], now)
		if at < len(b) {
			all = append(all, in.events(b[at:], now)...)
		}
		all = append(all, in.events(nil, now)...)
		if len(in.rest) > 0 {
			t.Errorf("%q is kept", in.rest)
		}
		for _, e := range all {
			if e.Kind == Key && (e.Key == "" || e.Key[0] < ' ' || e.Key == "\x7f") {
				t.Errorf("key %q", e.Key)
			}
		}
	})
}
