package ledger

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// TestPruneSessions: the transcript of a closed session moves into the archive; its turns stay, since
// usage is counted from them. An open one, and one that was closed since, stay whole.
func TestPruneSessions(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	r.says(devKey, "over")
	turn := r.mustClaim(devKey, "g1")
	_, err := r.Answered(r.ctx, TurnAnswer{Ref: turn.Job.Ref(), Entry: NewEntry{Kind: EntryAssistant, Content: "asks"}, Calls: []NewCall{{CallID: "c1", Name: "read", Input: "{}"}}})
	ok(t, err)
	_, err = r.EndCalls(r.ctx, TurnResults{Ref: turn.Job.Ref(), Results: []CallResult{{CallID: "c1", Entry: NewEntry{Kind: EntryToolResult, Content: "done"}}}})
	ok(t, err)
	r.end(turn, team.TurnDone)
	r.says(leadKey, "goes on")
	ok(t, r.CloseSession(r.ctx, devKey, "test"))

	r.now = func() time.Time { return time.Now().Add(time.Hour) }
	mark := must[PruneMark](t)(r.PruneMark(r.ctx, time.Now().Add(time.Minute).UnixMilli()))
	var archive bytes.Buffer
	told := must[Pruned](t)(r.Archive(r.ctx, mark, &archive))
	did := must[Pruned](t)(r.Prune(r.ctx, mark))
	if told != did || did.Sessions != 1 || did.Entries != 3 {
		t.Errorf("archived %+v, pruned %+v", told, did)
	}
	for _, line := range []string{`{"session":{"key":"` + devKey, `"turns":[{"id":1,`, `"content":"over"`, `"content":"asks"`, `"content":"done"`, `{"call":{"id":1,`} {
		if !strings.Contains(archive.String(), line) {
			t.Errorf("no %s in\n%s", line, archive.String())
		}
	}
	if strings.Contains(archive.String(), "goes on") {
		t.Error("an open session is in the archive")
	}
	r.wantTexts(devKey)
	r.wantTexts(leadKey, "goes on")
	if jobs := must[[]TurnJob](t)(r.TurnJobs(r.ctx, JobFilter{Session: devKey})); len(jobs) != 1 || jobs[0].State != team.TurnDone {
		t.Errorf("%+v", jobs)
	}
	r.open(NewSession{Key: devKey, Member: devKey}) // it may begin anew
	r.says(devKey, "again")
	if list := must[[]Entry](t)(r.Entries(r.ctx, devKey, 0, 0)); len(list) != 1 || list[0].Content != "again" || list[0].Seq != 4 {
		t.Errorf("%+v", list)
	}
	sound(t, r.Ledger)
}
