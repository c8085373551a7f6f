package tui

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// bare is a machine without a team, on which commands make one.
type bare struct {
	fuzzed
	mu    sync.Mutex
	teams []view.Glance
	told  func([]view.Glance)
	ran   []string
	fails error
}

func (b *bare) Teams(ctx context.Context, _ <-chan bool, each func([]view.Glance)) error {
	b.mu.Lock()
	b.told = each
	list := b.teams
	b.mu.Unlock()
	each(list)
	<-ctx.Done()
	return ctx.Err()
}

func (b *bare) Start(context.Context) (view.Start, error) {
	return view.Start{
		Found: []view.Finding{{Name: "git", Detail: "not installed \x1b[2J", Hint: "apt install git", Fails: true}},
		Commands: []view.Command{{Line: "teamctl create demo", Args: []string{"create", "demo"}, About: "a team"},
			{Line: "teamctl spawn builder", Args: []string{"spawn", "builder"}, About: "a worker"}},
	}, nil
}

func (b *bare) Begin(_ context.Context, commands []view.Command) (string, error) {
	b.mu.Lock()
	for _, c := range commands {
		b.ran = append(b.ran, c.Args...)
	}
	err, told := b.fails, b.told
	if err == nil {
		b.teams = []view.Glance{{Team: "demo"}}
	}
	list := b.teams
	b.mu.Unlock()
	if err != nil {
		return "", err
	}
	told(list)
	return "created team demo", nil
}

func (b *bare) commands() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ran)
}

// newOnBare is a screen on a machine without a team.
func newOnBare(t *testing.T, machine *bare) *onPaper {
	t.Helper()
	s := newOnPaper(t, machine, nil)
	s.ui.Start, s.m.name, s.m.have, s.stopTeam = machine, "", false, nil
	s.goTo(inTeams)
	return s
}

// TestStart checks that without a team the screen shows what is not in order on the machine and the first
// commands, that enter runs one after a question, with those before it, and that the screen then shows the
// new team.
func TestStart(t *testing.T) {
	t.Parallel()
	machine := &bare{}
	s := newOnBare(t, machine)
	s.shows("teamctl spawn builder")
	s.shows("git  not installed")
	s.types("enter")
	s.shows("Run this command?")
	s.types("y")
	s.shows("nothing was done")
	s.types("1")
	s.shows("no team is open")
	s.types("G") // the last row
	s.types("enter")
	s.shows("apt install git")
	s.types("k")
	s.m.readOnly = true
	s.types("enter")
	s.shows("this screen shows only")
	s.m.readOnly = false
	if ran := machine.commands(); len(ran) != 0 {
		t.Fatalf("ran %q without a question", ran)
	}
	machine.fails = team.Errorf(team.CodeUnavailable, "the disk is full").WithHint("remove something")
	s.types("enter")
	s.shows("Run these 2 commands")
	s.event(term.Event{Kind: term.Key, Key: "enter", At: s.now})
	s.shows("nothing was done: it had not been on the screen for long enough")
	s.look(2 * unread)
	s.types("down")
	s.shows("nothing was done")
	s.types("enter")
	s.look(2 * unread)
	s.m.rows = 4
	s.look(0)
	s.look(2 * unread)
	s.types("enter")
	s.shows("too small")
	s.m.rows = 40
	s.look(0)
	s.look(2 * unread)
	if ran := machine.commands(); len(ran) != 0 {
		t.Fatalf("ran %q by keys that nobody typed after reading", ran)
	}
	s.types("enter")
	s.shows("the disk is full: remove something")
	machine.mu.Lock()
	machine.fails, machine.ran = nil, nil
	machine.mu.Unlock()
	s.types("enter")
	s.shows("Run these 2 commands")
	s.look(2 * unread)
	s.types("enter")
	s.shows("created team demo")
	for s.m.name != "demo" || s.m.at != inTeam {
		select {
		case change := <-s.changes:
			change(s.m)
		case <-time.After(5 * time.Minute):
			t.Fatalf("the screen is at %s of %q", s.m.at, s.m.name)
		}
	}
	if got := fmt.Sprint(machine.commands()); got != "[create demo spawn builder]" {
		t.Errorf("ran %s", got)
	}
}

// TestStartOfAnother checks that the screen shows the first team of the machine, too, if it is made elsewhere.
func TestStartOfAnother(t *testing.T) {
	t.Parallel()
	machine := &bare{}
	s := newOnBare(t, machine)
	s.shows("THE FIRST COMMANDS")
	machine.told([]view.Glance{{Team: "other"}})
	s.shows("other")
	if s.m.name != "other" || s.m.at != inTeam {
		t.Errorf("the screen is at %s of %q", s.m.at, s.m.name)
	}
}

// TestStartAtEverySize checks that at every size no line is too many or too wide.
func TestStartAtEverySize(t *testing.T) {
	t.Parallel()
	machine := &bare{}
	begins, _ := machine.Start(t.Context())
	step := 1
	if testing.Short() {
		step = 3
	}
	for cols := 1; cols < 130; cols += 2 * step {
		for rows := 1; rows < 30; rows += step {
			for _, over := range []overlay{{}, {kind: startOverlay, at: 1}} {
				m := newModel()
				m.cols, m.rows, m.now, m.at, m.over = cols, rows, epoch, inTeams, over
				m.begins = beginning{known: true, read: true, Start: begins}
				m.cursor = findingRow + "0"
				m.refresh()
				f := m.draw()
				if len(f.lines) != rows {
					t.Fatalf("%dx%d: %d lines", cols, rows, len(f.lines))
				}
				for _, l := range f.lines {
					if view.Width(l) > cols || view.Colors(l) != l {
						t.Fatalf("%dx%d: %q", cols, rows, l)
					}
				}
			}
		}
	}
}

// TestPlainStart checks that the plain screen lists the same, and that a number runs a command after a yes.
func TestPlainStart(t *testing.T) {
	t.Parallel()
	machine := &bare{}
	in, typed := io.Pipe()
	out := &lines{came: make(chan struct{}, 1)}
	p := &Plain{Home: machine, Start: machine, Why: "--plain", In: in, Out: out}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(t.Context()) }()
	types := func(text string) {
		t.Helper()
		if _, err := io.WriteString(typed, text+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	out.shows(t, "doctor finds 1 of 1: git, not installed. hint: apt install git")
	out.shows(t, "2: teamctl spawn builder, a worker")
	out.shows(t, "a number runs the command")
	types("2")
	out.shows(t, "run it?")
	types("")
	out.shows(t, "nothing was done")
	if ran := machine.commands(); len(ran) != 0 {
		t.Fatalf("ran %q without a yes", ran)
	}
	types("1")
	types("yes")
	out.shows(t, "created team demo")
	if got := fmt.Sprint(machine.commands()); got != "[create demo]" {
		t.Errorf("ran %s", got)
	}
	types("quit")
	if err := typed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// lines is what a plain screen has written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
	came chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	select {
	case l.came <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (l *lines) shows(t *testing.T, want string) {
	t.Helper()
	for {
		l.mu.Lock()
		text := l.text.String()
		l.mu.Unlock()
		if strings.Contains(text, want) {
			return
		}
		select {
		case <-l.came:
		case <-time.After(5 * time.Minute):
			t.Fatalf("no %q in\n%s", want, text)
		}
	}
}
