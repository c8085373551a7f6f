package tui

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// TestChosenKeys checks that a key of ui.yaml replaces the default one, both in its effect and in the
// hints.
func TestChosenKeys(t *testing.T) {
	t.Parallel()
	c, err := ParseConfig([]byte("mouse: off\nalerts: off\nplain: on\nascii: false\nkeys:\n  reject: X\n  down: [ctrl-n, '%']\n  help: '&'\n  palette: []\n  pause: P\n  open: tab\n  next-list: [l]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Mouse || c.Alerts || !c.Plain || c.ASCII == nil || *c.ASCII {
		t.Errorf("%+v", c)
	}
	m := shownOf(crowd(8), 120, 36)
	m.keys = c.Keys
	m.refresh()
	for key, want := range map[string]string{"X": "reject", "a": "approve", "x": ""} {
		if a, _ := m.actionOf(key); a.ID != want {
			t.Errorf("%s is the action %q, want %q", key, a.ID, want)
		}
	}
	for key, want := range map[string]string{"%": "down", "ctrl-n": "down", "j": "", "down": "", "&": "help", "?": "", ":": "", "k": "up", "tab": "open", "ctrl-c": "quit", "q": "quit"} {
		if got := m.keys.commandOf(key); got != want {
			t.Errorf("%s is the command %q, want %q", key, got, want)
		}
	}
	foot := strip(m.foot(false))
	for _, want := range []string{"a approve", "X reject", "& help"} {
		if !strings.Contains(foot, want) {
			t.Errorf("no %q in %q", want, foot)
		}
	}
	for _, gone := range []string{"x reject", "? help", ": all"} {
		if strings.Contains(foot, gone) {
			t.Errorf("%q in %q", gone, foot)
		}
	}
	r := &run{m: m, ui: &UI{}}
	before := m.cursor
	r.key(term.Event{Key: "%", At: epoch.Add(time.Minute)}, "")
	if m.cursor == before {
		t.Error("% does not go down")
	}
	r.key(term.Event{Key: "j", At: epoch.Add(2 * time.Minute)}, "")
	if !strings.Contains(m.toast, "& lists the keys") {
		t.Errorf("j says %q", m.toast)
	}
	r.key(term.Event{Key: "&", At: epoch.Add(3 * time.Minute)}, "")
	help := text(m.draw())
	for _, want := range []string{"ctrl-n %", "&               the keys of this place"} {
		if !strings.Contains(help, want) {
			t.Errorf("no %q in the help:\n%s", want, help)
		}
	}
	m.over.field.text = "leave"
	if help = text(m.draw()); !strings.Contains(help, "q ctrl-c") {
		t.Errorf("how to leave:\n%s", help)
	}
	m.choose(before)
	m.over, m.toast = overlay{kind: requestOverlay, approval: m.approval()}, ""
	if foot := strip(m.foot(false)); !strings.Contains(foot, "X reject") {
		t.Errorf("a request names %q", foot)
	}
}

// TestDefaultKeys checks that no default key has two meanings, except for keys whose meaning depends on the row.
func TestDefaultKeys(t *testing.T) {
	t.Parallel()
	all := bindings()
	ids := map[string]bool{}
	var shared []string
	for i, a := range all {
		if ids[a.id] {
			t.Errorf("%s is there twice", a.id)
		}
		ids[a.id] = true
		for _, k := range a.keys {
			if why := checkKey(k); why != "" {
				t.Errorf("%s: %s", a.id, why)
			}
		}
		for _, b := range all[i+1:] {
			one, two := a, b
			one.keys, two.keys = nil, nil
			for _, k := range a.keys {
				if slices.Contains(b.keys, k) && together(one, two) {
					shared = append(shared, k+" "+a.id+" "+b.id)
				}
			}
		}
	}
	if want := []string{"e approve-edited edit-plan-comment", "t review-task add-task", "space reviewed not-reviewed"}; !slices.Equal(slices.Sorted(slices.Values(shared)), slices.Sorted(slices.Values(want))) {
		t.Errorf("shared: %q, want %q", shared, want)
	}
	if c, err := ParseConfig(nil); err != nil || !reflect.DeepEqual(c, defaultConfig()) {
		t.Errorf("an empty file: %+v, %v", c, err)
	}
}

// TestRefusedConfig checks that a mistake is reported with its position and changes no key, and that the
// other settings of the file take effect.
func TestRefusedConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"keys:\n  reject: j\n", "ui.yaml:2:11: key j means both reject and down"},
		{"keys:\n  down: x\n", "ui.yaml:2:9: key x means both down and reject"},
		{"keys:\n  retry: r\n  depend: r\n", "ui.yaml:2:10: key r means both retry and depend"},
		{"keys:\n  pause: [t]\n", "ui.yaml:2:11: key t means both pause and add-task"},
		{"keys:\n  next-change: c\n", "ui.yaml:2:16: key c means both next-change and comment"},
		{"keys:\n  up: W\n  approve: W\n", "ui.yaml:2:7: key W means both up and approve"},
		{"keys:\n  aprove: y\n", `ui.yaml:2:3: unknown action "aprove" (did you mean approve?)`},
		{"keys:\n  approve: entr\n", `ui.yaml:2:12: unknown key "entr" (did you mean enter?)`},
		{"keys:\n  approve: alt-x\n", `ui.yaml:2:12: unknown key "alt-x" (a key is one character, ctrl-a to ctrl-z, or enter`},
		{"keys:\n  approve: ctrl-c\n", "ui.yaml:2:12: ctrl-c always leaves"},
		{"keys:\n  approve: ctrl-m\n", `ui.yaml:2:12: terminals send ctrl-m as "enter"`},
		{"keys:\n  kill: K\n", "ui.yaml:2:9: kill cannot be taken back"},
		{"keys:\n  approve: {a: b}\n", "ui.yaml:2:12: the keys of approve must be a key or a list"},
		{"keys: yes\n", "ui.yaml:1:7: keys must be a mapping"},
		{"mouse: sometimes\n", "ui.yaml:1:8: mouse is on or off"},
		{"mous: off\n", `ui.yaml:1:1: unknown key "mous" (did you mean mouse?)`},
		{"- a\n", "ui.yaml:1:1: ui.yaml must be a mapping"},
		{"keys:\n  up: u\n  up: w\n", "ui.yaml:3:3: "},
		{"a: [\n", "ui.yaml:1:"},
		{"mouse: off\n---\nmouse: on\n", "ui.yaml:3:1: a second document"},
		{"keys:\n  up: \"\\e\"\n", `ui.yaml:2:7: unknown key ""`},
		{strings.Repeat("#", maxConfig+1), "ui.yaml: it is larger"},
		{"keys:\n  aprove: y\n  rejet: y\n", "did you mean approve?), and 1 more"},
	} {
		got, err := ParseConfig([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || team.CodeOf(err) != team.CodeInvalid || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
		if !reflect.DeepEqual(got.Keys, DefaultKeys()) {
			t.Errorf("%q changes keys", c.text)
		}
	}
	if c, err := ParseConfig([]byte("plain: on\nmouse: off\nkeys:\n  reject: j\n")); err == nil || !c.Plain || c.Mouse {
		t.Errorf("beside a wrong key: %+v, %v", c, err)
	}
}

// TestDocumentedConfig checks that the example in docs/ui.md is valid.
func TestDocumentedConfig(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/ui.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```yaml\n")
	example, _, ok := strings.Cut(rest, "```")
	c, err := ParseConfig([]byte(example))
	if !ok || err != nil || c.Mouse || c.Keys.first("reject") != "X" {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestReadConfig checks that a missing file means the defaults, and that a file which others can write is refused.
func TestReadConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if c, err := ReadConfig(dir); err != nil || !c.Mouse {
		t.Errorf("no file: %+v, %v", c, err)
	}
	file := filepath.Join(dir, ConfigName)
	if err := os.WriteFile(file, []byte("mouse: off\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := ReadConfig(dir); err != nil || c.Mouse {
		t.Errorf("%+v, %v", c, err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if c, err := ReadConfig(dir); team.CodeOf(err) != team.CodeDenied || !c.Mouse {
		t.Errorf("written by anybody: %+v, %v", c, err)
	}
}

// FuzzConfig checks that the reader panics on no text, and that in every configuration that it accepts each key
// has one meaning.
func FuzzConfig(f *testing.F) {
	for _, s := range []string{"", "mouse: off\nkeys: {up: [w, 1], down: s}\n", "keys: &a {up: *a}", "<<: {a: b}", "keys:\n  ? [a]\n  : b\n", "keys: !!x y", "\xff\xfe", "keys: {down: \"\u0301\", up: 数}", "a:\n\t- b", "%YAML 1.2\n---\nkeys: ~"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig(data)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x1b") || view.Clean(err.Error()) != err.Error() {
				t.Errorf("the error is not a line: %q", err)
			}
			if !reflect.DeepEqual(c.Keys, DefaultKeys()) {
				t.Errorf("refused with %v, and keys changed", err)
			}
			return
		}
		all := bindings()
		for i, a := range all {
			for _, b := range all[i+1:] {
				for _, k := range c.Keys[a.id] {
					if slices.Contains(c.Keys[b.id], k) && together(a, b) {
						t.Errorf("%q: %s means both %s and %s", data, k, a.id, b.id)
					}
				}
			}
		}
	})
}
