package ledger

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// An operation that is retried in a repeated context is applied once, even if the
// retry goes to a different Writer than the one that applied it; a new operation is
// applied.
func TestRepeated(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	must[[]Task](t)(l.CreateTasks(ctx, make12(), "lead"))
	var ids []string
	direct := Direct(l.DB())
	mute := writerFunc(func(ctx context.Context, op Op) (json.RawMessage, error) {
		ids = append(ids, op.ID)
		if _, err := direct.Write(ctx, op); err != nil {
			return nil, err
		}
		return nil, team.Errorf(team.CodeTimeout, "no answer")
	})
	up := true
	w := New(l.DB(), Switching(func(context.Context) (Writer, bool) { return mute, up }, direct))
	in := ClaimIn{Owner: "s-a"}
	again := Repeated(ctx)
	for range 2 {
		if _, err := w.Claim(again, in); !team.IsCode(err, team.CodeTimeout) {
			t.Fatal(err)
		}
	}
	if len(ids) != 2 || ids[0] == "" || ids[0] != ids[1] {
		t.Errorf("ids %q", ids)
	}
	_, err := w.Claim(again, ClaimIn{Owner: "s-a", OneOnly: true})
	refused(t, err, team.CodeConflict, team.ReasonAgentBusy) // not an attempt at the same operation
	up = false
	for range 2 {
		if got := must[*Task](t)(w.Claim(Repeated(again), in)); got.ID != "1" || got.Attempt != 1 {
			t.Errorf("%+v", got)
		}
	}
	if got := must[*Task](t)(w.Claim(ctx, in)); got.ID != "2" {
		t.Errorf("%+v", got)
	}
}
