package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/agent"
	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/fakemodel"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// envHoldAt names a directory. While it has a file with an agent's name and a number in it, the
// agent counts its steps and writes them to NAME.steps. At the step with that number it writes
// NAME.held and waits until the file is removed.
const envHoldAt = "TEST_HOLD_AT" // agents do not inherit TEAMCTL_ variables

// heldAt returns a context that makes the program's agents wait at a step, if envHoldAt is set.
func heldAt(ctx context.Context) context.Context {
	dir := os.Getenv(envHoldAt)
	if dir == "" {
		return ctx
	}
	var mu sync.Mutex
	steps := map[string]int{}
	return agent.WithSteps(ctx, func(name, step string) {
		file := filepath.Join(dir, name)
		text, err := os.ReadFile(file)
		if err != nil {
			return
		}
		at, err := strconv.Atoi(string(text))
		if err != nil {
			panic(err)
		}
		mu.Lock()
		steps[name]++
		n := steps[name]
		err = appendLine(file+".steps", step)
		mu.Unlock()
		if err == nil && n == at {
			err = os.WriteFile(file+".held", []byte(step), 0o600)
		}
		if err != nil {
			panic(err)
		}
		tick := time.NewTicker(100 * time.Millisecond) // dozens of agents wait for a minute
		defer tick.Stop()
		for n == at {
			if _, err := os.Lstat(file); err != nil {
				return
			}
			<-tick.C
		}
	})
}

func appendLine(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

// victim is a member that is killed at a step.
type victim struct {
	name, backend string
	step          int    // at which it is killed, or 0
	kill          string // "agent", "shim", or "all": both and the supervisor
}

// matrix is a team of agents that wait at a step of their turn.
type matrix struct {
	*faultRig
	steps string // directory of envHoldAt
	model *fakemodel.Server
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	m := &matrix{faultRig: newFaultRig(t)}
	m.model = m.strictModel()
	m.steps = filepath.Join(m.dir, "steps")
	if err := os.Mkdir(m.steps, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // also if the test has failed during a round
		if err := os.RemoveAll(m.steps); err != nil {
			t.Error(err)
		}
	})
	m.env = append(m.env, envHoldAt+"="+m.steps)
	m.teamctl("ps") // starts the supervisor, whose environment the agents inherit
	return m
}

// matrixTurn returns a turn that reads, writes, runs a command and sends a message to the lead.
// Members do not write the same file, because each pair of them would be warned.
func matrixTurn(name string) string {
	return strings.ReplaceAll(strings.Join([]string{
		`@@call glob {"pattern":"*"}`,
		`@@call write {"path":"made-NAME","content":"by the turn\n"}`,
		`@@shell echo ran >> log-NAME; wc -l < log-NAME`,
		`@@call SendMessage {"type":"message","recipient":"team-lead","content":"told by the turn"}`,
		`@@call read {"path":"made-NAME"}`,
		`@@say ` + llmDone,
	}, "\n"), "NAME", name)
}

// begin spawns a member and sends it the turn, at whose step it waits.
func (m *matrix) begin(h victim) {
	m.Helper()
	m.thinker(h.name, h.backend)
	m.until(h.name+" to be at rest", func() bool { return m.members()[h.name].Activity == team.Idle })
	if err := os.WriteFile(filepath.Join(m.steps, h.name), []byte(strconv.Itoa(h.step)), 0o600); err != nil {
		m.Fatal(err)
	}
	m.send(h.name, matrixTurn(h.name))
}

func (m *matrix) done(name string) bool {
	list := m.entries(name)
	return len(list) > 0 && list[len(list)-1].Content == llmDone
}

func (m *matrix) at(name string) string {
	step, err := os.ReadFile(filepath.Join(m.steps, name+".held"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		m.Fatal(err)
	}
	return string(step)
}

// letGo lets a member or its restarted process continue.
func (m *matrix) letGo(name string) {
	if err := os.Remove(filepath.Join(m.steps, name)); err != nil {
		m.Error(err)
	}
}

// victims returns a member for each backend and each way to be killed, at a step.
func victims(step int) (out []victim) {
	for _, backend := range []string{"pty", "tmux"} {
		for _, kill := range []string{"agent", "shim", "all"} {
			out = append(out, victimOf(backend, kill, step))
		}
	}
	return append(out, victimOf("in-process", "all", step))
}

func victimOf(backend, kill string, step int) victim {
	return victim{fmt.Sprintf("%s%d-%s", kill, step, strings.TrimSuffix(backend, "-process")), backend, step, kill}
}

// round kills members during their turns, and compares the outcomes with that of an undisturbed
// turn.
func (m *matrix) round(all []victim, want outcome) {
	var wg sync.WaitGroup
	for _, h := range all {
		wg.Go(func() { m.begin(h) })
	}
	wg.Wait()
	if m.Failed() {
		m.FailNow()
	}
	var names []string
	at := map[string]string{}
	for _, h := range all {
		m.until(fmt.Sprintf("%s to be at step %d", h.name, h.step), func() bool { return m.at(h.name) != "" })
		at[h.name] = m.at(h.name)
		names = append(names, h.name)
	}
	var everything []backends.ProcID
	for _, h := range all {
		if h.kill == "all" {
			if h.backend != "in-process" {
				p := m.proc(h.name)
				everything = append(everything, p.Agent, p.Shim)
			}
			continue
		}
		p := m.proc(h.name)
		m.kill(map[string]backends.ProcID{"agent": p.Agent, "shim": p.Shim}[h.kill])
		m.letGo(h.name)
	}
	for _, h := range all {
		if h.kill != "all" {
			m.until(h.name+" to be through after "+at[h.name], func() bool { return m.done(h.name) })
		}
	}
	for _, id := range append(everything, m.supervisor()) {
		m.kill(id)
	}
	for _, h := range all {
		if h.kill == "all" {
			m.letGo(h.name)
		}
	}
	m.teamctl("ps") // starts a supervisor
	for _, h := range all {
		m.until(h.name+" to be through after "+at[h.name], func() bool { return m.done(h.name) })
		m.compare(h.name, at[h.name], want)
	}
	m.teamctl(append([]string{"kill"}, names...)...)
}

// outcome is the result of a turn.
type outcome struct {
	entries []string // kinds and tools; whole has the texts too
	whole   []string
	turns   string
	files   map[string]string
	told    int
}

// effects lists the calls of matrixTurn that change something.
var effects = []string{"write", "shell", "SendMessage"}

func (m *matrix) outcome(name string) (o outcome, lost map[string]bool) {
	m.Helper()
	lost = map[string]bool{}
	turns := map[int64]bool{}
	for _, e := range m.entries(name) {
		var meta struct {
			Name   string
			Failed bool
		}
		if len(e.Meta) > 0 {
			if err := json.Unmarshal(e.Meta, &meta); err != nil {
				m.Fatal(err)
			}
		}
		if e.Kind == ledger.EntryAssistant {
			turns[e.Job] = true
		}
		line, text := fmt.Sprint(e.Kind, " ", meta.Name), e.Content
		switch {
		case e.Kind == ledger.EntryUser && !strings.Contains(text, "@@call glob"):
			continue // describes the member, or is about other members
		case e.Kind == ledger.EntryUser:
			text = ""
		case e.Kind == ledger.EntryToolResult && strings.Contains(text, ledger.ResultLost):
			lost[meta.Name] = true
			text = ledger.ResultLost
		case meta.Name == "SendMessage":
			text = strconv.FormatBool(meta.Failed) // it has the id of the message
		}
		o.entries = append(o.entries, line)
		o.whole = append(o.whole, line+" "+strings.ReplaceAll(text, name, "NAME"))
	}
	for _, j := range m.conversation(name).Turns {
		if turns[j.ID] { // later ones are about the ends of other members
			o.turns += fmt.Sprintln(j.Cause, j.State, j.Reason)
		}
	}
	o.files = map[string]string{}
	tree := m.members()[name].Worktree
	list, err := os.ReadDir(tree)
	if err != nil {
		m.Fatal(err)
	}
	for _, f := range list {
		if f.Name() == ".git" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(tree, f.Name()))
		if err != nil {
			m.Fatal(err)
		}
		o.files[strings.ReplaceAll(f.Name(), name, "NAME")] = string(b)
	}
	var sent struct{ Messages []ledger.Message }
	if err := json.Unmarshal([]byte(m.teamctl("message", "ls", "--json", "--limit", "100000")), &sent); err != nil {
		m.Fatal(err)
	}
	for _, one := range sent.Messages {
		if one.From == name && one.Text == "told by the turn" {
			o.told++
		}
	}
	return o, lost
}

// compare checks the outcome of a turn that was killed at a step.
func (m *matrix) compare(name, step string, want outcome) {
	m.Helper()
	got, lost := m.outcome(name)
	if fmt.Sprint(got.entries) != fmt.Sprint(want.entries) {
		m.Errorf("%s, killed at %q, has other entries:\n%s\nwant\n%s", name, step, strings.Join(got.whole, "\n"), strings.Join(want.whole, "\n"))
		return
	}
	if got.turns != want.turns {
		m.Errorf("%s, killed at %q: turns\n%swant\n%s", name, step, got.turns, want.turns)
	}
	if len(lost) > 1 {
		m.Errorf("%s, killed at %q: %d calls are lost: %v", name, step, len(lost), lost)
	}
	for i, line := range got.whole {
		// The result of a read depends on the calls that were lost.
		if line != want.whole[i] && len(lost) == 0 {
			m.Errorf("%s, killed at %q:\n%s\nwant\n%s", name, step, line, want.whole[i])
		}
	}
	for call, what := range map[string]struct{ got, want string }{
		"write":       {got.files["made-NAME"], want.files["made-NAME"]},
		"shell":       {got.files["log-NAME"], want.files["log-NAME"]},
		"SendMessage": {strings.Repeat("told\n", got.told), strings.Repeat("told\n", want.told)},
	} {
		if what.got != what.want && (!lost[call] || what.got != "") {
			m.Errorf("%s, killed at %q: what %s has left: %q, want %q; lost: %v", name, step, call, what.got, what.want, lost)
		}
	}
	for file := range got.files {
		if _, ok := want.files[file]; !ok {
			m.Errorf("%s, killed at %q: file %s is left", name, step, file)
		}
	}
}

// stepRounds bounds the long form of the test, which takes two minutes a round.
var stepRounds = flag.Int("steps.rounds", 4, "rounds of 28 agents that are killed at a step of a turn; 0: all steps")

// TestLLMIsKilledAtEveryStep kills built-in agents with SIGKILL before and after each commit of a
// turn, on each backend: the agent, the shim, or everything with the supervisor. Transcript,
// turns, files and mail are those of an undisturbed turn, each action happened once or is
// reported as unknown, and a server that refuses what vendors refuse has refused nothing. Each run
// takes some of the steps at random.
func TestLLMIsKilledAtEveryStep(t *testing.T) {
	m := newMatrix(t)
	m.begin(victim{name: "calm", backend: "pty"})
	m.until("the undisturbed turn", func() bool { return m.done("calm") })
	m.until("calm to be at rest", func() bool { return m.members()["calm"].Activity == team.Idle })
	m.letGo("calm")
	want, _ := m.outcome("calm")
	steps, err := os.ReadFile(filepath.Join(m.steps, "calm.steps"))
	if err != nil {
		t.Fatal(err)
	}
	if want.told != 1 || len(want.files) != 2 {
		t.Fatalf("the undisturbed turn has left %+v", want)
	}
	last := strings.Count(string(steps), "\n")
	if last < 20 {
		t.Fatalf("only %d steps:\n%s", last, steps)
	}
	for _, call := range effects {
		if !strings.Contains(strings.Join(want.entries, "\n"), call) {
			t.Fatalf("the undisturbed turn has no %s:\n%s", call, strings.Join(want.whole, "\n"))
		}
	}
	var all []victim
	for n := range last {
		all = append(all, victims(n+1)...)
	}
	if testing.Short() { // each way to be killed and each backend once, at steps of each part of the turn
		on := []string{"pty", "tmux"}
		rand.Shuffle(len(on), func(i, j int) { on[i], on[j] = on[j], on[i] })
		part := rand.Perm(3)
		step := func(i int) int { return 1 + part[i]*last/3 + rand.IntN(last/3) }
		all = []victim{
			victimOf(on[0], "agent", step(0)), victimOf(on[1], "shim", step(1)), victimOf("in-process", "all", step(2)),
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i, some := range slices.Collect(slices.Chunk(all, 28)) {
		if i == *stepRounds && *stepRounds > 0 {
			t.Logf("%d of %d ways are left for other runs", len(all)-28*i, len(all))
			break
		}
		m.round(some, want)
	}
	if why := m.model.Refused(); len(why) > 0 {
		t.Errorf("refused %d times: %s", len(why), why[0])
	}
}
