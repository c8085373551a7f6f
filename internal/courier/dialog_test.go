package courier

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"testing/synctest"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// screenOf is a channel to a Gemini CLI that reports only by its screen, with the watch of that
// screen.
type screenOf struct {
	*couriertest.Watcher
	ch      *watched
	s       *couriertest.Screen
	written chan struct{}
	stop    func()
}

func watchDialogs(t *testing.T, b team.Bundle, s *couriertest.Screen) *screenOf {
	t.Helper()
	rules, ok, err := adapter.BuiltinRules(adapter.Gemini)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	f := Facts{
		Bundle: b, Name: "gem", AgentID: "gem@demo", Generation: "g1", Log: slog.New(slog.DiscardHandler),
		Link: adapter.Link{Agent: adapter.Gemini, Ways: []adapter.Way{adapter.WayTyping}},
	}
	f.look = newLooker(f, s, rules)
	w := &screenOf{Watcher: couriertest.NewWatcher(), s: s, written: make(chan struct{}, 1)}
	ch, err := openTyping(t.Context(), f, s, w.Report)
	if err != nil {
		t.Fatal(err)
	}
	d := newDialogs(f, s, w.Report)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { f.look.watch(ctx, w.written, d, w.Report) })
	w.ch = &watched{Channel: ch, dialogs: d, stop: func() { cancel(); done.Wait() }}
	w.stop = w.ch.Close
	return w
}

// shows redraws the screen and lets a minute pass.
func (w *screenOf) shows(above string, dialog bool) {
	w.s.With(func() { w.s.Above, w.s.Dialog = above, dialog })
	w.written <- struct{}{}
	<-time.After(time.Minute) // of the bubble
	synctest.Wait()
}

// asks returns the requests since from, and the ids of those that have ended.
func (w *screenOf) asks(from int) (asks []team.Ask, settled []string) {
	for _, o := range w.All()[from:] {
		if o.Ask != nil {
			asks = append(asks, *o.Ask)
		}
		if o.Settled != "" {
			settled = append(settled, o.Settled)
		}
	}
	return asks, settled
}

func (w *screenOf) pressed() (keys string) {
	w.s.With(func() { keys = strings.Join(w.s.Keys, "") })
	return keys
}

// A dialog that only the screen shows becomes a request, once, and its keys answer it while the
// same dialog is open.
func TestDialogOnTheScreenOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, keys string
		allow      bool
	}{{"allowed", "1", true}, {"refused", "3", false}} {
		t.Run(c.name, func(t *testing.T) {
			b := team.Bundle(t.TempDir())
			synctest.Test(t, func(t *testing.T) {
				w := watchDialogs(t, b, &couriertest.Screen{OnKey: func(s *couriertest.Screen) { s.Above, s.Dialog = "⠏ (esc to cancel, 1s)", false }})
				defer w.stop()
				w.shows(couriertest.GeminiDialog, true)
				w.shows(strings.ReplaceAll(strings.ReplaceAll(couriertest.GeminiDialog, "● 1", "  1"), "  2.", "● 2."), true) // a person moves the selection
				asks, settled := w.asks(0)
				if len(asks) != 1 || len(settled) != 0 {
					t.Fatalf("asked %+v, settled %v", asks, settled)
				}
				a := asks[0]
				if a.For != team.WaitPermission || !a.Keys || !a.Screen || !strings.HasPrefix(a.Description, "Allow execution of [Shell]?\n") ||
					!strings.Contains(a.Description, "touch asked && t\nouch again\n") {
					t.Errorf("asked %+v", a)
				}
				if err := w.ch.Answer(t.Context(), team.Reply{ID: a.ID, For: a.For, Allow: c.allow}); err != nil {
					t.Error(err)
				}
				if _, settled := w.asks(0); w.pressed() != c.keys || len(settled) != 1 || settled[0] != a.ID {
					t.Errorf("pressed %q, settled %v", w.pressed(), settled)
				}
			})
		})
	}
}

// A program that is slow to process its key gets no second one, which would end up in its input
// box; a dialog that closes then counts as answered.
func TestKeyThatIsTakenLate(t *testing.T) {
	t.Parallel()
	b := team.Bundle(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		w := watchDialogs(t, b, &couriertest.Screen{})
		defer w.stop()
		w.shows(couriertest.GeminiDialog, true)
		asks, _ := w.asks(0)
		if len(asks) != 1 {
			t.Fatalf("asked %+v", asks)
		}
		yes := team.Reply{ID: asks[0].ID, For: team.WaitPermission, Allow: true}
		for range 3 {
			if err := w.ch.Answer(t.Context(), yes); team.ReasonOf(err) != "no_dialog" {
				t.Errorf("%v", err)
			}
			<-time.After(pressAgain / 4)
		}
		w.shows("✦ done", false)
		if err := w.ch.Answer(t.Context(), yes); err != nil {
			t.Error(err)
		}
		if _, settled := w.asks(0); w.pressed() != "1" || len(settled) != 0 {
			t.Errorf("pressed %q, settled %v", w.pressed(), settled)
		}
	})
}

// No key is pressed in another dialog, however similar, and a request ends with its dialog.
func TestAnswerOfAnotherDialog(t *testing.T) {
	t.Parallel()
	b := team.Bundle(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		w := watchDialogs(t, b, &couriertest.Screen{})
		defer w.stop()
		w.shows(couriertest.GeminiDialog, true)
		asks, _ := w.asks(0)
		if len(asks) != 1 {
			t.Fatalf("asked %+v", asks)
		}
		first, from := asks[0], w.Mark()
		answer := func(id string, want team.Code) {
			t.Helper()
			if err := w.ch.Answer(t.Context(), team.Reply{ID: id, For: team.WaitPermission, Allow: true}); !team.IsCode(err, want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		// The program has continued, and the screen was not read since.
		other := strings.ReplaceAll(couriertest.GeminiDialog, "touch asked && t", "touch asked && r")
		w.s.With(func() { w.s.Above = other })
		answer(first.ID, team.CodeUnavailable)
		w.shows(other, true)
		answer(first.ID, team.CodeNotFound)
		asks, settled := w.asks(from)
		if len(asks) != 1 || asks[0].ID == first.ID || len(settled) != 1 || settled[0] != first.ID {
			t.Fatalf("asked %+v, settled %v", asks, settled)
		}
		// The same dialog once more, after something else, is another request.
		w.shows("✦ done", false)
		w.shows(other, true)
		answer(asks[0].ID, team.CodeNotFound)
		if asks, settled := w.asks(from); len(asks) != 2 || asks[1].ID == asks[0].ID || len(settled) != 2 || settled[1] != asks[0].ID {
			t.Errorf("asked %+v, settled %v", asks, settled)
		}
		if w.pressed() != "" {
			t.Errorf("pressed %q", w.pressed())
		}
	})
}

// A dialog that the program's own policy answers at once makes no request, and a dialog that is
// missing on a half-drawn screen has not closed.
func TestDialogThatIsDrawn(t *testing.T) {
	t.Parallel()
	b := team.Bundle(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		w := watchDialogs(t, b, &couriertest.Screen{Above: couriertest.GeminiDialog, Dialog: true})
		defer w.stop()
		synctest.Wait() // the screen has been read
		w.shows("✦ done", false)
		if asks, _ := w.asks(0); len(asks) != 0 {
			t.Errorf("asked %+v", asks)
		}
		w.shows(couriertest.GeminiDialog, true)
		w.s.With(func() { w.s.Above = "" })
		w.written <- struct{}{}
		<-time.After(lookQuiet + time.Millisecond)
		synctest.Wait()
		w.shows(couriertest.GeminiDialog, true)
		if asks, settled := w.asks(0); len(asks) != 1 || len(settled) != 0 {
			t.Errorf("asked %+v, settled %v", asks, settled)
		}
	})
}

// The next supervisor continues with the pending request, and withdraws one whose dialog has
// closed meanwhile.
func TestDialogOfAnEarlierSupervisor(t *testing.T) {
	t.Parallel()
	b := team.Bundle(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		w := watchDialogs(t, b, &couriertest.Screen{})
		w.shows(couriertest.GeminiDialog, true)
		asks, _ := w.asks(0)
		w.stop()
		if len(asks) != 1 {
			t.Fatalf("asked %+v", asks)
		}
		id := asks[0].ID
		for _, c := range []struct {
			above   string
			dialog  bool
			settled int
		}{{couriertest.GeminiDialog, true, 0}, {"✦ done", false, 1}} {
			w := watchDialogs(t, b, &couriertest.Screen{Above: c.above, Dialog: c.dialog})
			w.shows(c.above, c.dialog)
			asks, settled := w.asks(0)
			if len(asks) != 1 || asks[0].ID != id || len(settled) != c.settled {
				t.Errorf("%s: asked %+v, settled %v", c.above, asks, settled)
			}
			w.stop()
		}
	})
}

// A program that reports its dialogs itself does not get a second request.
func TestDialogOfOneThatAsksItself(t *testing.T) {
	t.Parallel()
	for _, l := range []adapter.Link{
		{Agent: adapter.Gemini, Version: "0.61.0", Ways: []adapter.Way{adapter.WayHooks, adapter.WayTyping}},
		{Agent: adapter.Claude, Version: "2.1.329", Ways: []adapter.Way{adapter.WayHooks, adapter.WayTyping}},
		{Agent: adapter.Codex, Ways: []adapter.Way{adapter.WayAppServer}}, {Agent: adapter.Opencode, Ways: []adapter.Way{adapter.WayServer}},
	} {
		if newDialogs(Facts{Link: l}, &couriertest.Screen{}, nil) != nil {
			t.Errorf("%+v is asked for by its screen", l)
		}
	}
	for _, l := range []adapter.Link{
		{Agent: adapter.Claude, Version: "2.1.112", Ways: []adapter.Way{adapter.WayHooks, adapter.WayTyping}},
		{Agent: adapter.Codex, Ways: []adapter.Way{adapter.WayTyping}}, {Agent: adapter.Generic, Ways: []adapter.Way{adapter.WayPull}},
	} {
		d := newDialogs(Facts{Link: l, Bundle: team.Bundle(t.TempDir())}, &couriertest.Screen{}, nil)
		if d == nil {
			t.Errorf("%+v is not asked for", l)
		}
		d.close()
	}
}
