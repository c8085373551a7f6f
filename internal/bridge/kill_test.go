package bridge

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestKilled: a bridge is killed again and again, at any point, while the program
// writes and reads its mailboxes, writes its config in place and without a lock, and both
// boards grow. Nothing is lost on either side, and nothing is doubled.
func TestKilled(t *testing.T) {
	t.Parallel()
	const each, kills = 24, 5
	r := newRig(t)
	codex := r.member("codex")
	r.once()

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writers, readers sync.WaitGroup
	newer, older := program{native: r.native(), ids: true}, program{native: r.native(), inPlace: true}
	pace := func(f func(i int)) {
		writers.Go(func() {
			tick := time.NewTicker(4 * time.Millisecond)
			defer tick.Stop()
			for i := range each {
				<-tick.C
				f(i)
			}
		})
	}
	check := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	pace(func(i int) { check(newer.mail(r, "codex", team.LeadName, fmt.Sprintf("lead %d", i))) })
	pace(func(i int) { check(older.mail(r, "codex", "researcher", fmt.Sprintf("researcher %d", i))) })
	pace(func(i int) { r.send(r.caller(codex), team.LeadName, fmt.Sprintf("report %d", i)) })
	pace(func(i int) { r.send(r.caller(codex), "researcher", fmt.Sprintf("question %d", i)) })
	pace(func(i int) {
		if i%4 == 0 { // far apart: the bridge gives out the ids that follow, and this program overwrites
			r.task(fmt.Sprint(1000*(i+1)), fmt.Sprintf(`"subject":"theirs %d","description":"","status":"pending","blocks":[],"blockedBy":[]`, i))
			_, err := r.team.Ledger.CreateTasks(t.Context(), []ledger.NewTask{{Subject: fmt.Sprintf("ours %d", i)}}, "person")
			check(err)
		}
	})
	pace(func(i int) { check(rewriteConfig(r.native(), i)) })

	got := map[string]*taken{team.LeadName: {}, "researcher": {}}
	for name, box := range got {
		readers.Go(func() {
			tick := time.NewTicker(7 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				texts, err := newer.take(r, name)
				if ctx.Err() == nil {
					check(err)
				}
				box.add(texts)
			}
		})
	}
	for range kills {
		killed(r, time.Duration(20+rand.IntN(150))*time.Millisecond)
	}
	writers.Wait()
	last, out := r.spawn()
	r.until("all mail is over", func() bool {
		return got[team.LeadName].len() >= each && got["researcher"].len() >= each && len(r.here("codex")) >= 2*each
	})
	r.until("both boards are the same", func() bool {
		tasks, err := r.team.Ledger.Tasks(t.Context(), ledger.TaskFilter{})
		return err == nil && len(tasks) >= each/2 && len(r.nativeTasks()) >= each/2
	})
	if err := last.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = last.Wait() // ended by a signal
	stop()
	readers.Wait()
	r.once()
	if s := out.String(); s != "" {
		t.Errorf("the bridge said: %s", s)
	}
	for name, prefix := range map[string]string{team.LeadName: "report", "researcher": "question"} {
		got[name].exactly(t, name, prefix, each)
	}
	here := &taken{}
	for _, e := range r.here("codex") {
		here.add([]string{e.Text})
	}
	here.exactly(t, "codex", "lead", each)
	here.exactly(t, "codex", "researcher", each)
	tasks, err := r.team.Ledger.Tasks(t.Context(), ledger.TaskFilter{})
	if err != nil || len(tasks) != each/2 || len(r.nativeTasks()) != each/2 {
		t.Errorf("%d tasks here, %d there, want %d (%v)", len(tasks), len(r.nativeTasks()), each/2, err)
	}
	if cfg := r.config(); cfg.Member("codex") == nil || cfg.Member("researcher") == nil || len(cfg.Members) != 3 {
		t.Errorf("the config at the end: %+v", cfg.Members)
	}
}

// taken is what somebody has got.
type taken struct {
	mu    sync.Mutex
	texts []string
}

func (b *taken) add(texts []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.texts = append(b.texts, texts...)
}

func (b *taken) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.texts)
}

func (b *taken) exactly(t *testing.T, who, prefix string, n int) {
	t.Helper()
	count := map[string]int{}
	for _, s := range b.texts {
		count[s]++
	}
	for i := range n {
		if text := fmt.Sprintf("%s %d", prefix, i); count[text] != 1 {
			t.Errorf("%s got %q %d times", who, text, count[text])
		}
	}
}

// spawn starts a bridge in a process of its own.
func (r *rig) spawn() (*exec.Cmd, *bytes.Buffer) {
	r.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	var out bytes.Buffer
	cmd.Stderr = &out
	cmd.Env = append(os.Environ(), "BRIDGE_TEST_HOME="+r.team.Layout.Home.Dir, "BRIDGE_TEST_DIR="+r.dir)
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { // of a test that failed; else it has ended
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, &out
}

// killed lets a bridge live for a while and kills it.
func killed(r *rig, life time.Duration) {
	r.Helper()
	cmd, _ := r.spawn()
	<-time.After(life)
	if err := cmd.Process.Kill(); err != nil {
		r.Error(err)
	}
	_ = cmd.Wait() // killed
}

// rewriteConfig is an older program that wakes its teammate: it reads the config, empties
// it, and writes it again in two halves, without a lock.
func rewriteConfig(n native, i int) error {
	cfg, err := n.readConfig()
	if err != nil {
		return nil // it meets a half file as well, and lets it be
	}
	active := i%2 == 0
	if _, changed := cfg.SetMemberActive("researcher", active); !changed {
		return nil
	}
	data, err := cfg.Marshal()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(n.config(), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	for _, half := range [][]byte{data[:len(data)/2], data[len(data)/2:]} {
		if _, err := f.Write(half); err != nil {
			return err
		}
	}
	return f.Close()
}
