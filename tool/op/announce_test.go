package op

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// TestAnnouncesFitTheSchema: what the ledger writes of each end of a child's turn is what
// docs/announce.schema.json describes, and what is wrong in it is found.
func TestAnnouncesFitTheSchema(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	schema, err := AnnounceSchema()
	if err != nil {
		t.Fatal(err)
	}
	fits, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	valid := func(raw []byte) error {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		return fits.Validate(v)
	}
	const parent = "agent:default:teammate:dev"
	var metas []json.RawMessage
	h.team(func(tm *tool.Team) error {
		ctx, l := t.Context(), tm.Ledger
		if _, _, err := l.AddMember(ctx, ledger.Member{Name: "dev", SessionKey: parent, Role: team.RoleExecutor}, true); err != nil {
			return err
		}
		for _, s := range []ledger.NewSession{{Key: parent, Member: parent}, {Key: "agent:scout:subagent:1", Owner: parent, Label: "look", Routing: json.RawMessage(`{"tags":["a"]}`)}} {
			if _, err := l.OpenSession(ctx, s); err != nil {
				return err
			}
		}
		for i, e := range []ledger.TurnEnd{
			{State: team.TurnDone, Entries: []ledger.NewEntry{{Kind: ledger.EntryAssistant, Content: strings.Repeat("ä ö ", 1000)}}, Usage: json.RawMessage(`{"inputTokens":1,"costUsd":0.5,"costKnown":true}`), Result: json.RawMessage(`{"commits":["abc"]}`)},
			{State: team.TurnFailed, Reason: "loop"}, {State: team.TurnCancelled}, {State: team.TurnDone},
		} {
			in := ledger.Input{NewEntry: ledger.NewEntry{Kind: ledger.EntryUser, Content: fmt.Sprint("look ", i)}}
			got, err := l.TakeIn(ctx, ledger.TakeIn{Session: "agent:scout:subagent:1", Inputs: []ledger.Input{in}})
			if err != nil {
				return err
			}
			if i == 3 { // it was never begun
				if err := l.CancelTurn(ctx, got.Job, "not needed"); err != nil {
					return err
				}
				break
			}
			for {
				c, err := l.ClaimTurn(ctx, ledger.ClaimTurnIn{Member: parent, Generation: "g"})
				if err != nil || c == nil {
					return fmt.Errorf("no turn: %w", err)
				}
				end := ledger.TurnEnd{Ref: c.Job.Ref(), State: team.TurnDone}
				if c.Job.ID == got.Job {
					end = e
					end.Ref = c.Job.Ref()
				}
				if _, err := l.EndTurn(ctx, end); err != nil {
					return err
				}
				if c.Job.ID == got.Job {
					break
				}
			}
		}
		list, err := l.Announces(ctx, parent)
		for _, a := range list {
			metas = append(metas, a.Meta)
		}
		return err
	})
	if len(metas) != 4 {
		t.Fatalf("%d announces", len(metas))
	}
	for _, m := range metas {
		if err := valid(m); err != nil {
			t.Errorf("%v: %s", err, m)
		}
	}
	for from, to := range map[string]string{
		`"status":"ok"`: `"status":"fine"`, `"kind":"subagent_announce"`: `"kind":"announce"`, `"internal":true`: `"internal":false`, `"tags":["a"]`: `"tags":null`,
		`"hop":1`: `"hop":"1"`, `"duration_ms":`: `"duration":`, `"summary":"`: `"summary":"` + strings.Repeat("x", team.MaxSummary), `"trace_id":`: `"trace":`,
	} {
		wrong := strings.Replace(string(metas[0]), from, to, 1)
		if wrong == string(metas[0]) || valid([]byte(wrong)) == nil {
			t.Errorf("%s: not found in %s", to, wrong)
		}
	}
}
