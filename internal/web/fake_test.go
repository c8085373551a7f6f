package web

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

const evil = `<script>alert("x")</script>`

// fake is a team with one request for a command, by an agent that tries everything in its texts.
type fake struct {
	mu      sync.Mutex
	request view.Request
	deeds   []view.Deed
	changed chan struct{}
	said    []view.Comment
	screen  string // what the screen of ann shows below the first line
	last    string // the same once more, when she ends
	long    bool   // it has more tasks than a snapshot
	ready   string // what would be merged
	teams   []view.Glance
	listed  chan struct{} // the teams have changed
	gone    error         // why it cannot be followed or changed
	removed bool          // there is no ann
}

func newFake() *fake {
	return &fake{screen: "two", changed: make(chan struct{}, 10), listed: make(chan struct{}, 10), teams: []view.Glance{{Team: "demo"}}, request: view.Request{
		ID: 1, Kind: view.NeedPermission, State: "pending", Member: "ann", Subject: evil, Tool: "Bash", Command: "echo \u202e " + evil, Asked: time.Now(),
	}}
}

func (f *fake) Teams(ctx context.Context, _ <-chan bool, each func([]view.Glance)) error {
	for {
		f.mu.Lock()
		list := slices.Clone(f.teams)
		f.mu.Unlock()
		if each(list); ctx.Err() != nil {
			return ctx.Err()
		}
		select {
		case <-f.listed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// list changes the list of teams.
func (f *fake) list(teams ...view.Glance) {
	f.mu.Lock()
	f.teams = teams
	f.mu.Unlock()
	f.listed <- struct{}{}
}

func (f *fake) Open(context.Context, string) (view.Team, error) { return f, nil }

func (f *fake) Follow(ctx context.Context, _ func() view.Interest, each func(view.Snapshot)) error {
	for {
		f.mu.Lock()
		s := view.Snapshot{
			Team: "demo", Members: []view.Member{{Name: "ann", State: team.Running, Activity: team.Waiting}},
			Tasks: []view.Task{{ID: "5", Subject: evil, Status: team.TaskFailed, Owner: "ann"}},
		}
		gone := f.gone
		if f.long {
			s.Whole = &view.Counts{Failed: 1, Ready: 900, Total: 901}
		}
		if f.request.State == "pending" {
			s.Needs = []view.Need{{Kind: f.request.Kind, Member: "ann", Approval: 1, Text: evil, Since: time.Now()}}
		}
		f.mu.Unlock()
		if gone != nil {
			return gone
		}
		each(s)
		select {
		case <-f.changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func (f *fake) Request(_ context.Context, id int64) (view.Request, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id != 1 {
		return view.Request{}, team.Errorf(team.CodeNotFound, "no request %d", id)
	}
	r := f.request
	r.Comments = slices.Clone(r.Comments)
	return r, nil
}

// onPlan keeps a draft on the plan.
func (f *fake) onPlan(d view.Deed) view.Done {
	list := f.request.Comments
	i := slices.IndexFunc(list, func(c view.Comment) bool { return c.Name == d.Comment })
	switch {
	case d.Comment == "":
		c := view.Comment{Name: fmt.Sprint(len(list) + 1), State: "draft", Text: d.Text}
		_, _ = fmt.Sscanf(d.Lines, "%d-%d", &c.First, &c.Last)
		c.Last = max(c.First, c.Last)
		f.request.Comments, i = append(list, c), len(list)
	case d.Text == "":
		f.request.Comments = slices.Delete(slices.Clone(list), i, i+1)
		return view.Done{Said: "done", Comment: d.Comment}
	default:
		list = slices.Clone(list)
		list[i].Text = d.Text
		f.request.Comments = list
	}
	return view.Done{Said: "done", Comment: f.request.Comments[i].Name}
}

func (f *fake) Member(_ context.Context, name string) (view.MemberDetail, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if name != "ann" || f.removed {
		return view.MemberDetail{}, team.Errorf(team.CodeNotFound, "no member %q", name)
	}
	return view.MemberDetail{Member: view.Member{Name: "ann", State: team.Running}}, nil
}

func (f *fake) Task(_ context.Context, id string) (view.TaskDetail, error) {
	return view.TaskDetail{Task: view.Task{ID: id, Subject: evil, Status: team.TaskFailed}, Description: evil}, nil
}

func (f *fake) Drafts(context.Context) (map[string]string, error) { return nil, nil }

func (f *fake) Keep(context.Context, view.Deed) error                { return nil }
func (*fake) Writable(context.Context) error                         { return nil }
func (*fake) PutOff(context.Context, view.Need, time.Duration) error { return nil }
func (*fake) TakeUp(context.Context, view.Need) error                { return nil }
func (f *fake) Near(context.Context, string) (view.Near, error)      { return view.Near{}, nil }

// TaskPage has 900 tasks beside that of the snapshot, and looks at 400 for a page.
func (f *fake) TaskPage(_ context.Context, q view.TaskQuery) (p view.TaskPage, err error) {
	_, _, id := view.Place(q.After)
	for id++; id <= 900; id++ {
		if p.Looked == 400 || len(p.Tasks) == q.Most {
			p.Next = view.PlaceIn(view.PartPending, 0, id-1)
			break
		}
		p.Looked++
		if x := (view.Task{ID: fmt.Sprint(id), Subject: fmt.Sprintf("job %d.", id), Status: team.TaskPending}); view.Matches(x.Words(""), q.Filter) {
			p.Tasks = append(p.Tasks, x)
		}
	}
	return p, nil
}

func (f *fake) TaskNews(context.Context, []string, int64) (view.TaskNews, error) {
	return view.TaskNews{}, nil
}

func (f *fake) Dependencies(context.Context) (map[string][]string, error) { return nil, nil }

func (f *fake) Receipts(context.Context, string) ([]view.Receipt, error) { return nil, nil }

func (f *fake) Mail(context.Context) ([]view.Message, error) {
	return []view.Message{{ID: "m1", From: "ann", To: team.LeadName, Text: evil, Receipts: []view.Receipt{{To: team.LeadName, State: "read"}}}}, nil
}

func (f *fake) Usage(context.Context) (view.Usage, error) {
	return view.Usage{Members: []view.Spent{{Name: "ann", Held: evil}}}, nil
}

func (f *fake) Changes(_ context.Context, member, _ string) (view.Changes, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return view.Changes{
		Member: member, Base: strings.Repeat("f", 40), Patch: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+" + evil + "\n+" + strings.Repeat("z", 300) + "\n",
		Comments: slices.Clone(f.said), Also: map[string][]string{"x": {evil}},
	}, nil
}

func (f *fake) Merges(context.Context) ([]view.Merge, error) {
	return []view.Merge{{ID: 1, Member: "ann", Why: evil}}, nil
}

func (f *fake) GateLog(context.Context, int64, func(view.Merge, view.LogPart)) error { return nil }

func (f *fake) TaskLog(context.Context, string, int) (view.TaskLog, error) {
	return view.TaskLog{}, nil
}

func (f *fake) Log(context.Context, string, bool) ([]view.Event, error) { return nil, nil }

func (f *fake) Timeline(context.Context) (view.Timeline, error) {
	now := time.Now()
	return view.Timeline{Team: evil, From: now.Add(-time.Minute), To: now, Lanes: []view.Lane{{Member: evil}}}, nil
}

func (f *fake) Screen(ctx context.Context, _ string, each func(view.Frame)) error {
	f.mu.Lock()
	text, last := f.screen, f.last
	f.mu.Unlock()
	each(view.Frame{Lines: []string{"\x1b]0;title\x07\x1b[31m" + evil, text}})
	if last != "" {
		each(view.Frame{Lines: []string{last}})
		return errors.New("ann has ended")
	}
	<-ctx.Done()
	return nil
}

func (f *fake) History(context.Context, string) ([]string, error) { return nil, nil }

// Do answers as a ledger does: once, and only what was seen.
func (f *fake) Do(_ context.Context, d view.Deed) (view.Done, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone != nil {
		return view.Done{}, f.gone
	}
	if d.Action == "comment-plan" || d.Action == "edit-plan-comment" {
		f.deeds = append(f.deeds, d)
		return f.onPlan(d), nil
	}
	if d.Approval != 0 {
		if f.request.State != "pending" {
			return view.Done{}, team.Errorf(team.CodeConflict, "already answered")
		}
		if f.request.Seen() != d.Seen {
			return view.Done{}, team.Errorf(team.CodeConflict, "no longer what you saw")
		}
		f.request.State = map[bool]string{true: "rejected", false: "approved"}[d.Action == "reject"]
		f.changed <- struct{}{}
	}
	done := view.Done{Said: "done"}
	switch d.Action {
	case "merge-ready":
		switch {
		case f.ready == "":
			return view.Done{Said: "nothing is ready to be merged"}, nil
		case d.Preview:
			return view.Done{Said: f.ready, Seen: "seen " + f.ready}, nil
		case d.Seen != "seen "+f.ready:
			return view.Done{}, team.Errorf(team.CodeConflict, "what is ready has changed: nothing was merged")
		}
		done.Said = "ann merged into main"
	case "comment", "comment-file":
		c := view.Comment{Name: fmt.Sprintf("1.%d", len(f.said)+1), State: "draft", Path: d.Path, Old: d.Old, Text: d.Text}
		_, _ = fmt.Sscanf(d.Lines, "%d-%d", &c.First, &c.Last)
		c.Last = max(c.First, c.Last)
		f.said = append(f.said, c)
		done.Comment = c.Name
	case "edit-comment":
		i := slices.IndexFunc(f.said, func(c view.Comment) bool { return c.Name == d.Comment })
		if f.said[i].Text = d.Text; d.Text == "" {
			f.said = slices.Delete(f.said, i, i+1)
		}
		done.Comment = d.Comment
	case "send-review":
		for i := range f.said {
			f.said[i].State = "open"
		}
	}
	f.deeds = append(f.deeds, d)
	return done, nil
}
