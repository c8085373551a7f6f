package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
)

// A config.json that cannot be read is moved aside, and the log says so once.
func TestConfigAsideIsAnEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	publish := func() {
		t.Helper()
		if err := Publish(t.Context(), r.layout, r.led); err != nil {
			t.Fatal(err)
		}
	}
	events := func() []ledger.Event {
		t.Helper()
		all, err := r.led.Events(t.Context(), 0, 0, ledger.EventFilter{What: EventConfigAside})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	publish()
	if all := events(); len(all) != 0 {
		t.Fatalf("%+v", all)
	}
	const damaged = `{"name": "t", "mem`
	if err := os.WriteFile(r.layout.Config(), []byte(damaged), 0o600); err != nil {
		t.Fatal(err)
	}
	publish()
	publish()
	all := events()
	if len(all) != 1 {
		t.Fatalf("%d events: %+v", len(all), all)
	}
	if b, err := os.ReadFile(filepath.Join(r.layout.Dir, all[0].ID)); err != nil || string(b) != damaged {
		t.Errorf("%q, %v", b, err)
	}
}

// What others do to the file between two writings of one supervisor counts: its words
// are kept, a file that is gone is made anew, a damaged one is moved aside.
func TestPublishSeesWhatOthersWrote(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var f configFile
	publish := func() string {
		t.Helper()
		if err := f.publish(t.Context(), r.layout, r.led); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(r.layout.Config())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(r.layout.Config(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := publish()
	if again := publish(); again != first {
		t.Errorf("unchanged, but %q", again)
	}
	theirs := strings.Replace(first, `{`, `{"theirs":[1],`, 1)
	write(strings.Replace(theirs, `"name"`, `"name":"other","was"`, 1))
	now := publish()
	for _, want := range []string{`"theirs": [`, `"was": "`} {
		if !strings.Contains(now, want) {
			t.Errorf("%s is not kept: %s", want, now)
		}
	}
	if strings.Contains(now, "other") {
		t.Errorf("the name is theirs: %s", now)
	}
	if err := os.Remove(r.layout.Config()); err != nil {
		t.Fatal(err)
	}
	if again := publish(); again != first {
		t.Errorf("made anew it is %q, not %q", again, first)
	}
	write(`{`)
	if again := publish(); again != first {
		t.Errorf("after a damaged one it is %q, not %q", again, first)
	}
}
