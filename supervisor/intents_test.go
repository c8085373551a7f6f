package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// approve approves the spawn of n members like a process that is killed right after the answer, and
// returns the approval's number.
func (r *rig) approve(n int) int64 {
	r.Helper()
	ctx := r.Context()
	asker, err := r.led.Member(ctx, "asker")
	if team.IsCode(err, team.CodeNotFound) {
		asker, _, err = r.led.AddMember(ctx, ledger.Member{
			Name: "asker", Desired: team.WantStopped, Observed: team.Completed, Spec: team.MemberSpec{WorktreeMode: "none"},
		}, true)
	}
	if err != nil {
		r.Fatal(err)
	}
	asked, err := r.led.Ask(ctx, ledger.AskIn{RequestID: team.NewUUID(), Kind: ledger.ApproveDelegation, Session: asker.SessionKey, Subject: "spawn x"})
	if err != nil {
		r.Fatal(err)
	}
	what, err := json.Marshal(Approved{Count: n, Spawn: team.SpawnRequest{Name: "x", Spec: team.MemberSpec{
		Agent: "command", Command: []string{"agent"}, Restart: team.RestartNever, WorktreeMode: "none", Cwd: r.layout.Dir,
	}}})
	if err != nil {
		r.Fatal(err)
	}
	_, err = r.led.Answer(ctx, ledger.AnswerIn{ID: asked.Approval.ID, Approve: true, By: team.LeadName, Intent: what})
	if err != nil {
		r.Fatal(err)
	}
	return asked.Approval.ID
}

// spawned returns the members on the roster by approvals, and what the requester was told.
func (r *rig) spawned() (names []string, told []string) {
	r.Helper()
	all, err := r.led.Members(r.Context(), true)
	if err != nil {
		r.Fatal(err)
	}
	for _, m := range all {
		if m.Spec.Approval != 0 {
			names = append(names, m.Name)
		}
	}
	mail, err := r.led.Messages(r.Context(), ledger.MessageFilter{Recipient: "asker"})
	if err != nil {
		r.Fatal(err)
	}
	for _, m := range mail {
		told = append(told, m.Text)
	}
	slices.Sort(names)
	return names, told
}

func (r *rig) started() int {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	return r.m.starts
}

// An approved spawn that was not carried out is carried out by the next supervisor, and one
// approved later by the running one; each once, whoever requests it again.
func TestApprovedSpawnIsCarriedOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := r.approve(1)
	s := r.supervisor()
	r.waitState("x", team.Running)
	out, err := s.CarryOut(t.Context(), before)
	if want := fmt.Sprintf("spawned after approval %d: x", before); err != nil || out.Error != nil || out.Text != want {
		t.Fatalf("%+v, %v", out, err)
	}
	later := r.approve(2)
	for range 3 {
		if out, err := s.CarryOut(t.Context(), later); err != nil || out.Error != nil {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	s.Close()
	s = r.supervisor()
	if _, err := s.CarryOut(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	names, told := r.spawned()
	if !slices.Equal(names, []string{"x", "x-2", "x-3"}) || len(told) != 2 || r.started() != 3 {
		t.Errorf("%v, %q, %d starts", names, told, r.started())
	}
	if _, err := s.CarryOut(t.Context(), 99); !team.IsCode(err, team.CodeNotFound) {
		t.Error(err)
	}
}

// A supervisor ends during an approved spawn: the next one starts the members that are on the
// roster and spawns the rest, as many as were approved.
func TestApprovedSpawnCutShort(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gate := make(chan struct{})
	r.m.gate = gate
	s := r.supervisor()
	id := r.approve(3)
	r.wait("x", "on the roster", func(m ledger.Member) bool { return m.Name != "" })
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	go func() {
		_, err := s.CarryOut(ctx, id)
		waiting <- err
	}()
	s.Close()
	cancel()
	if err := <-waiting; err == nil {
		t.Error("it was done")
	}
	if i, err := r.led.Intent(t.Context(), id); err != nil || i.Outcome != nil {
		t.Fatalf("%+v, %v", i, err)
	}
	close(gate)
	out, err := r.supervisor().CarryOut(t.Context(), id)
	if err != nil || out.Error != nil {
		t.Fatalf("%+v, %v", out, err)
	}
	names, told := r.spawned()
	if len(names) != 3 || len(told) != 1 || r.started() != 3 {
		t.Errorf("%v, %q, %d starts", names, told, r.started())
	}
}

// A spawn that fails ends the intent as well, and the requester is told the reason.
func TestApprovedSpawnFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.m.fail = team.Errorf(team.CodeUnavailable, "no terminal left")
	id := r.approve(1)
	out, err := r.supervisor().CarryOut(t.Context(), id)
	if err != nil || out.Error == nil || out.Error.Code != team.CodeUnavailable {
		t.Fatalf("%+v, %v", out, err)
	}
	r.m.mu.Lock()
	r.m.fail = nil
	r.m.mu.Unlock()
	if _, err := r.supervisor().CarryOut(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, told := r.spawned(); len(told) != 1 || told[0] != fmt.Sprintf("approval %d: the spawn failed: no terminal left", id) || r.started() != 0 {
		t.Errorf("%q, %d starts", told, r.started())
	}
}
