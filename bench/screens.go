package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	creack "github.com/creack/pty"

	"github.com/teamctl/teamctl/backends/pty"
	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// screens: the full screen, from its start to what it costs at rest.
var screens = benchmark{name: "screens", title: "The full screen", run: runScreens, note: screensNote}

const screensNote = `The floor is a program with the same internal/tui/term that shows fifty lines and moves a mark by a line for each key, on the same terminal (200 by 50). A key is timed from its write to the last byte of what it changes; ` +
	`an event from the end of its commit. Full paint is when the members, the tasks and the keys have all been written. Members are on PTYs but where tmux is named; what tmux takes is the processor time of its server and of the supervisor's control client, beside that of the same members without a screen. ` +
	`A run beside other work says little by its milliseconds: the floor of the same run shows how much of a figure is the machine. ` +
	`At rest the median of nine windows counts; once a minute ages go on by one and the supervisor is asked whether it is there, in the window with the most. ` +
	`Each second in which an age is repainted costs some 15 wake-ups: 12 are of the monitor of Go's runtime, which wakes with each timer and sleeps for 20 µs at a time while there is work, the others are the timer, and the terminal that has taken what was written. ` +
	`Of the resident memory at 50 members 9 MB are the process's own, and the rest are pages of the program's file, which all its processes share. ` +
	`First paint has 2200 page faults, which took 10 to 30 µs each on the machine of 2026-11-29: teamctl version alone took 24 ms there (6.7 on 2026-11-28), and the floor twice as long as a day before, when 8 members were painted after 28.4 ms. The screen beside chatty PTY members took 1.4, 1.8, 1.9 and 2.6 % of a core in four runs there. The status line took 1.21 and 1.23 times as long as ps in two runs there, 1.15 to 1.17 before.`

const (
	screenCols, screenRows = 200, 50
	// screenRest is how long nothing is written before a change counts as painted.
	screenRest = 40 * time.Millisecond
)

// lineChild is the floor: a program that moves one line.
const lineChild = "line"

// moveLine is that program. It ends with its terminal.
func moveLine() error {
	t, err := term.Open(term.Options{Path: "/dev/tty"}, nil)
	if err != nil {
		return err
	}
	defer t.Close()
	at := 0
	draw := func() {
		lines := make([]string, screenRows)
		for i := range lines {
			lines[i] = fmt.Sprintf("   %d %s", i, strings.Repeat("text ", 8))
		}
		lines[at] = " > " + lines[at][3:]
		lines[screenRows-1] = "q quit"
		t.Draw(term.Frame{Lines: lines})
	}
	draw()
	for e := range t.Events {
		switch {
		case e.Kind == term.Gone || e.Key == "q":
			return nil
		case e.Key == "j":
			at = min(at+1, screenRows-2)
		case e.Key == "k":
			at = max(at-1, 0)
		}
		draw()
	}
	return nil
}

// shown is a program on a terminal whose output is read.
type shown struct {
	cmd   *exec.Cmd
	tty   *os.File
	reads chan painted
}

// painted is a read of its output.
type painted struct {
	text []byte
	at   time.Time
}

func show(ctx context.Context, env []string, argv ...string) (*shown, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = env
	t, err := creack.StartWithSize(cmd, &creack.Winsize{Cols: screenCols, Rows: screenRows})
	if err != nil {
		return nil, err
	}
	s := &shown{cmd: cmd, tty: t, reads: make(chan painted, 4096)}
	go func() {
		defer close(s.reads)
		buf := make([]byte, 64<<10)
		for {
			n, err := t.Read(buf)
			if n > 0 {
				s.reads <- painted{bytes.Clone(buf[:n]), time.Now()}
			}
			if err != nil {
				return
			}
		}
	}()
	return s, nil
}

// until reads until all words have been written. What stands between them may be a move of the
// cursor.
func (s *shown) until(ctx context.Context, words ...string) error {
	var seen []byte
	for {
		all := true
		for _, w := range words {
			all = all && bytes.Contains(seen, []byte(w))
		}
		if all {
			return nil
		}
		select {
		case p, ok := <-s.reads:
			if !ok {
				return fmt.Errorf("the screen ended: %q", seen[max(0, len(seen)-2000):])
			}
			seen = append(seen, p.text...)
		case <-ctx.Done():
			return fmt.Errorf("no %q: %w: %q", words, ctx.Err(), seen[max(0, len(seen)-2000):])
		}
	}
}

// settled reads until nothing has been written for screenRest, after at least one read if some is
// set. It returns the bytes and the time of the last ones.
func (s *shown) settled(ctx context.Context, some bool) (n int, last time.Time, err error) {
	wait := screenRest
	if some {
		wait = 20 * time.Second
	}
	for {
		rest := time.NewTimer(wait)
		select {
		case p, ok := <-s.reads:
			rest.Stop()
			if !ok {
				return n, last, errors.New("the screen ended")
			}
			n, last, wait = n+len(p.text), p.at, screenRest
		case <-rest.C:
			if some && n == 0 {
				return n, last, errors.New("nothing is painted")
			}
			return n, last, nil
		case <-ctx.Done():
			rest.Stop()
			return n, last, ctx.Err()
		}
	}
}

// keys presses j and k and returns how long each took to its last byte, and how many bytes.
func (s *shown) keys(ctx context.Context, rounds int) (times []time.Duration, sizes []float64, err error) {
	for i := range rounds {
		if _, _, err := s.settled(ctx, false); err != nil {
			return nil, nil, err
		}
		began := time.Now()
		if _, err := s.tty.WriteString(string("jk"[i/8%2])); err != nil {
			return nil, nil, err
		}
		n, last, err := s.settled(ctx, true)
		if err != nil {
			return nil, nil, err
		}
		times, sizes = append(times, last.Sub(began)), append(sizes, float64(n))
		if err := pause.For(ctx, 60*time.Millisecond); err != nil { // keys in a burst are another thing
			return nil, nil, err
		}
	}
	return times, sizes, nil
}

// used reads what is painted for a while, and returns what the process took and how often it wrote.
func (s *shown) used(ctx context.Context, span time.Duration) (a activity, writes int, err error) {
	before, err := activityOf([]int{s.cmd.Process.Pid})
	if err != nil {
		return a, 0, err
	}
	end := time.NewTimer(span)
	defer end.Stop()
	for {
		select {
		case _, ok := <-s.reads:
			if !ok {
				return a, 0, errors.New("the screen ended")
			}
			writes++
			continue
		case <-end.C:
		case <-ctx.Done():
			return a, 0, ctx.Err()
		}
		now, err := activityOf([]int{s.cmd.Process.Pid})
		return now.since(before), writes, err
	}
}

func (s *shown) end() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = s.tty.Close()
}

// screenRig is a team, and the ways to show it.
type screenRig struct {
	*supervised
	floor []string
	envs  []string
}

// newScreens makes a team of so many members and tasks; chatty ones run and write, on terminals of a kind.
func newScreens(ctx context.Context, e env, dir, kind string, members, tasks, chatty int) (_ *screenRig, err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w, err := newWorld(ctx, e, dir, members-chatty)
	if err != nil {
		return nil, err
	}
	if err := w.tasks(ctx, tasks); err != nil {
		return nil, err
	}
	s := &screenRig{
		supervised: &supervised{world: w, kind: kind, client: control.NewClient(w.layout.Socket())},
		floor:      []string{"env", envChild + "=" + lineChild, exe},
		envs:       append(noTmux(os.Environ()), team.EnvHome+"="+w.layout.Home.Dir, "TERM=xterm-256color", "LC_ALL=C.UTF-8"),
	}
	if _, err := s.begin(ctx); err != nil {
		return nil, err
	}
	if _, err := s.more(ctx, chatty, []string{"env", envChild + "=" + chatChild, exe}); err != nil {
		return nil, errors.Join(err, s.end(ctx))
	}
	return s, nil
}

func (s *screenRig) show(ctx context.Context, args ...string) (*shown, error) {
	return show(ctx, s.envs, append([]string{s.bin, "ui", "--team", s.layout.Key}, args...)...)
}

// both shows the floor and the team.
func (s *screenRig) both(ctx context.Context, args ...string) (line, ui *shown, end func(), err error) {
	if line, err = show(ctx, s.envs, s.floor...); err != nil {
		return nil, nil, nil, err
	}
	if ui, err = s.show(ctx, args...); err != nil {
		line.end()
		return nil, nil, nil, err
	}
	return line, ui, func() { ui.end(); line.end() }, nil
}

// opens times the first full paint, beside that of the floor.
func (s *screenRig) opens(ctx context.Context, rounds int) (bare, ours []time.Duration, err error) {
	for range rounds {
		for _, x := range []struct {
			times *[]time.Duration
			argv  []string
			words []string
		}{
			{&bare, s.floor, []string{"quit"}},
			{&ours, []string{s.bin, "ui", "--team", s.layout.Key}, []string{"MEMBERS", "TASKS", "help"}},
		} {
			began := time.Now()
			p, err := show(ctx, s.envs, x.argv...)
			if err != nil {
				return nil, nil, err
			}
			err = p.until(ctx, x.words...)
			*x.times = append(*x.times, time.Since(began))
			p.end()
			if err != nil {
				return nil, nil, err
			}
		}
	}
	return bare, ours, nil
}

// residentMB is what the full screen of a team has, once it is at rest.
func (s *screenRig) residentMB(ctx context.Context) (float64, error) {
	p, err := s.show(ctx)
	if err != nil {
		return 0, err
	}
	defer p.end()
	if err := p.until(ctx, "MEMBERS", "TASKS"); err != nil {
		return 0, err
	}
	if _, _, err := p.used(ctx, 2*time.Second); err != nil {
		return 0, err
	}
	m, err := memoryOf(p.cmd.Process.Pid)
	return m.resident, err
}

func runScreens(ctx context.Context, e env) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	var figures []figure
	for _, part := range []func(context.Context, env) ([]figure, error){screenStarts, screenKeys, screenChatty, screenRests, screenLine} {
		more, err := part(ctx, e)
		if err != nil {
			return "", err
		}
		figures = append(figures, more...)
	}
	return table(e.rounds, fmt.Sprintf("A terminal of %d by %d.", screenCols, screenRows), figures), nil
}

// screenStarts: the first full paint, and memory, of small and large teams.
func screenStarts(ctx context.Context, e env) (figures []figure, err error) {
	many := 1_000_000
	if e.quick {
		many = 20_000
	}
	for _, c := range []struct {
		members, tasks int
		paint, memory  float64
	}{{8, 100, 30, 0}, {50, 100, 0, 40}, {500, many, 120, 80}} {
		s, err := newScreens(ctx, e, fmt.Sprint("w", c.members), pty.Name, c.members, c.tasks, 0)
		if err != nil {
			return nil, err
		}
		bare, ours, err := s.opens(ctx, e.rounds)
		mb := 0.0
		if err == nil {
			mb, err = s.residentMB(ctx)
		}
		if err = errors.Join(err, s.end(ctx)); err != nil {
			return nil, err
		}
		name := fmt.Sprintf("%d members, %d tasks: ", c.members, c.tasks)
		if c.paint > 0 {
			figures = append(figures, figure{name + "first full paint, p50", "moves one line", millis(median(bare)), millis(median(ours)), "ms", atMost(c.paint)})
		}
		if c.memory > 0 {
			figures = append(figures, figure{name + "resident", "", 0, mb, "MB", atMost(c.memory)})
		}
	}
	return figures, nil
}

// screenKeys: keys and events while members write.
func screenKeys(ctx context.Context, e env) (figures []figure, err error) {
	s, err := newScreens(ctx, e, "k", pty.Name, 50, 100, 20)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	line, ui, end, err := s.both(ctx, "--view", "tasks")
	if err != nil {
		return nil, err
	}
	defer end()
	for _, p := range []*shown{line, ui} {
		if err := p.until(ctx, "q"); err != nil {
			return nil, err
		}
	}
	if err := pause.For(ctx, 3*time.Second); err != nil { // the members have come up
		return nil, err
	}
	bare, bareSizes, err := line.keys(ctx, max(e.rounds, 100))
	if err != nil {
		return nil, err
	}
	ours, sizes, err := ui.keys(ctx, max(e.rounds, 100))
	if err != nil {
		return nil, err
	}
	const busy = "50 members, 20 of them writing: "
	figures = append(figures,
		figure{busy + "key to last byte, p50", "moves one line", millis(median(bare)), millis(median(ours)), "ms", atMost(3)},
		figure{busy + "key to last byte, p50", "moves one line", millis(median(bare)), millis(median(ours)), "ms", ratioAtMost(3)},
		figure{busy + "key to last byte, p99", "moves one line", millis(quantile(bare, 0.99)), millis(quantile(ours, 0.99)), "ms", atMost(10)},
		figure{"moving the selection, median", "moves one line", middle(bareSizes), middle(sizes), "bytes", atMost(200)})
	events, err := s.events(ctx, ui, e.rounds)
	if err != nil {
		return nil, err
	}
	figures = append(figures,
		figure{"event to last byte, p50", "", 0, millis(median(events)), "ms", atMost(60)},
		figure{"event to last byte, p99", "", 0, millis(quantile(events, 0.99)), "ms", atMost(300)})

	return figures, nil
}

// events times tasks from their commit to the last byte of what they change on the screen.
func (s *screenRig) events(ctx context.Context, ui *shown, rounds int) (times []time.Duration, err error) {
	led, closeDB, err := s.open(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	for i := range rounds {
		if err := pause.For(ctx, time.Second); err != nil {
			return nil, err
		}
		if _, _, err := ui.settled(ctx, false); err != nil {
			return nil, err
		}
		if _, err := led.CreateTasks(ctx, []ledger.NewTask{{Subject: fmt.Sprint("event ", i)}}, ""); err != nil {
			return nil, err
		}
		began := time.Now()
		_, last, err := ui.settled(ctx, true)
		if err != nil {
			return nil, err
		}
		times = append(times, max(0, last.Sub(began)))
	}
	return times, nil
}

// screenRests: how often a screen is woken on which nothing happens.
func screenRests(ctx context.Context, e env) (figures []figure, err error) {
	s, err := newScreens(ctx, e, "r", pty.Name, 8, 100, 0)
	if err != nil {
		return nil, err
	}
	made := time.Now()
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	line, ui, end, err := s.both(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	// Rows come to rest two seconds after the start, and the ages of the members after a minute.
	if _, _, err := ui.used(ctx, time.Until(made.Add(65*time.Second))); err != nil {
		return nil, err
	}
	if _, _, err := line.used(ctx, time.Second); err != nil {
		return nil, err
	}
	bare, _, err := line.used(ctx, 10*time.Second)
	if err != nil {
		return nil, err
	}
	var windows []float64 // a minute and a half
	for range 9 {
		ours, _, err := ui.used(ctx, 10*time.Second)
		if err != nil {
			return nil, err
		}
		windows = append(windows, float64(ours.wakes))
	}
	// A task in work has an age in seconds.
	if err := quiet(ctx, s.env, s.bin, "task", "claim", "1", "--team", s.layout.Key); err != nil {
		return nil, err
	}
	if _, _, err := ui.used(ctx, 2*time.Second); err != nil {
		return nil, err
	}
	ageing, _, err := ui.used(ctx, 10*time.Second)
	return []figure{
		{"at rest: wake-ups of all threads in 10 s, nothing ageing", "moves one line", float64(bare.wakes), middle(windows), "", atMost(0)},
		{"at rest: most of them in 10 s of a minute and a half", "", 0, slices.Max(windows), "", goal{}},
		{"at rest: wake-ups of all threads in 10 s, ages in seconds", "", 0, float64(ageing.wakes), "", atMost(10)},
	}, err
}

// screenLine: the status line as a process.
func screenLine(ctx context.Context, e env) (figures []figure, err error) {
	s, err := newScreens(ctx, e, "l", pty.Name, 8, 100, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	ps := &program{label: "teamctl ps --json", argv: []string{s.bin, "ps", "--json", "--team", s.layout.Key}, env: s.env}
	status := &program{label: "teamctl status", argv: []string{s.bin, "status", "--format", "tmux", "--team", s.layout.Key}, env: s.env}
	if err := interleave(ctx, e.rounds, []*program{ps, status}); err != nil {
		return nil, err
	}
	return []figure{{"status --format tmux as a process, p50", "ps --json", millis(median(ps.times)), millis(median(status.times)), "ms", ratioAtMost(1.2)}}, nil
}
