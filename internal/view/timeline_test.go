package view

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/teamctl/teamctl/team"
)

// timelineAt is a time of the sample, minutes from noon.
func timelineAt(minute float64) time.Time {
	return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(minute * float64(time.Minute)))
}

func sampleTimeline() TimelineIn {
	at := timelineAt
	state := func(minute float64, name string, before, after team.Observed, why string) Fact {
		return Fact{At: at(minute), Who: "supervisor", What: team.EventMemberState, ID: name, Before: string(before), After: string(after), Why: why}
	}
	does := func(minute float64, name, before, after string) Fact {
		return Fact{At: at(minute), Who: name, What: team.EventMemberActivity, ID: name, Before: before, After: after}
	}
	task := func(minute float64, who, what, id string, attempt int) Fact {
		return Fact{At: at(minute), Who: who, What: what, ID: id, Before: string(team.TaskInProgress), Attempt: attempt}
	}
	add := func(name string) Fact {
		return Fact{At: at(0), Who: "team-lead", What: team.EventMemberAdded, ID: name, After: string(team.Pending)}
	}
	return TimelineIn{
		Team: "demo", Run: 3, From: at(0), To: at(24), Subjects: map[string]string{"5": "integration <b>", "2": "lint"},
		Facts: []Fact{
			add(team.LeadName), add("builder"), add("old"), add("perf"),
			state(0.5, "builder", team.Pending, team.Running, ""), state(0.5, "old", team.Pending, team.Running, ""), state(1, "perf", team.Pending, team.Running, ""),
			does(1, "builder", "unknown", "working"), task(1, "builder", team.EventTaskClaimed, "5", 1), does(1, "perf", "unknown", "working"),
			task(2, "old", team.EventTaskClaimed, "2", 1), does(2, "old", "unknown", "working"),
			{At: at(3), What: team.EventMemberRenamed, ID: "tester", Before: "old", After: "tester"},
			task(8, "tester", team.EventTaskCompleted, "2", 0), does(8, "tester", "working", "idle"),
			does(9, "perf", "working", "limited"),
			task(10, "builder", team.EventTaskRetrying, "5", 0), task(12, "builder", team.EventTaskClaimed, "5", 2),
			state(14, "tester", team.Running, team.Exited, "exit 3"),
			does(20, "builder", "working", "waiting(plan)"),
			{At: at(22), What: team.EventMemberRemoved, ID: "perf"},
		},
	}
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	got := NewTimeline(sampleTimeline())
	at := timelineAt
	want := Timeline{Team: "demo", Run: 3, From: at(0), To: at(24), History: at(0), Lanes: []Lane{
		{
			Member: "builder",
			Spans: []Span{
				{LaneDown, at(0), at(0.5), ""}, {LaneUnknown, at(0.5), at(1), ""}, {LaneWorking, at(1), at(20), ""}, {LaneWaiting, at(20), at(24), "plan"},
			},
			Tasks: []Stint{
				{Task: "5", Subject: "integration <b>", Attempt: 1, From: at(1), To: at(10), End: "failed"},
				{Task: "5", Subject: "integration <b>", Attempt: 2, From: at(12), To: at(24)},
			},
			Totals: []LaneTotal{{LaneWorking, 19 * 60}, {LaneWaiting, 240}, {LaneDown, 30}, {LaneUnknown, 30}},
		},
		{
			Member: "tester", // by its name of today
			Spans: []Span{
				{LaneDown, at(0), at(0.5), ""}, {LaneUnknown, at(0.5), at(2), ""}, {LaneWorking, at(2), at(8), ""}, {LaneIdle, at(8), at(14), ""}, {LaneDown, at(14), at(24), "exit 3"},
			},
			Tasks:  []Stint{{Task: "2", Subject: "lint", Attempt: 1, From: at(2), To: at(8), End: "completed"}},
			Totals: []LaneTotal{{LaneWorking, 360}, {LaneIdle, 360}, {LaneDown, 630}, {LaneUnknown, 90}},
		},
		{
			Member: "perf",
			Spans:  []Span{{LaneDown, at(0), at(1), ""}, {LaneWorking, at(1), at(9), ""}, {LaneLimited, at(9), at(22), ""}},
			Tasks:  []Stint{}, Totals: []LaneTotal{{LaneWorking, 480}, {LaneLimited, 780}, {LaneDown, 60}},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Of what lies before the history that is kept, the first changes tell; and nothing is said
// of members for which no supervisor stands.
func TestTimelineUnknown(t *testing.T) {
	t.Parallel()
	at := timelineAt
	in := TimelineIn{
		From: at(0), To: at(10), Down: at(7),
		Members: []Member{{Name: team.LeadName, Lead: true}, {Name: "quiet", State: team.Running, Activity: team.Idle}, {Name: "off", State: team.Exited}},
		Facts: []Fact{
			{At: at(-5), What: team.EventMemberActivity, ID: "a", Before: "working", After: "idle"},
			{At: at(2), What: team.EventTaskCompleted, Who: "a", ID: "9", Before: string(team.TaskInProgress)},
			{At: at(4), What: team.EventMemberState, ID: "b", Before: string(team.Backoff), After: string(team.Running)},
		},
	}
	got := NewTimeline(in)
	want := []Lane{
		{Member: "b", Spans: []Span{{LaneDown, at(0), at(4), ""}, {LaneUnknown, at(4), at(7), ""}, {LaneUnknown, at(7), at(10), "no supervisor"}}, Tasks: []Stint{},
			Totals: []LaneTotal{{LaneDown, 240}, {LaneUnknown, 360}}},
		{Member: "quiet", Spans: []Span{{LaneIdle, at(0), at(7), ""}, {LaneUnknown, at(7), at(10), "no supervisor"}}, Tasks: []Stint{},
			Totals: []LaneTotal{{LaneIdle, 420}, {LaneUnknown, 180}}},
		{Member: "off", Spans: []Span{{LaneDown, at(0), at(10), ""}}, Tasks: []Stint{}, Totals: []LaneTotal{{LaneDown, 600}}},
	}
	if diff := cmp.Diff(want, got.Lanes[1:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if a := got.Lanes[0]; a.Spans[0].State != LaneIdle || len(a.Tasks) != 1 || !a.Tasks[0].From.Equal(at(0)) {
		t.Errorf("the lane of a: %+v", a)
	}
}

func TestTimelineText(t *testing.T) {
	t.Parallel()
	l := NewTimeline(sampleTimeline())
	for _, test := range []struct {
		d    Drawing
		want string
	}{
		{Drawing{Cols: 110}, ` TIME of run 3, 12:00 to 12:24, a column is 22s
 ▓ working  ? waiting  ◌ limited  · idle  ╌ down  ¿ unknown  ✗ failed
 builder  ╌¿¿5▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓✗▓▓▓▓▓▓5▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓???????????  waits 4m, plan
 tester   ╌¿¿¿¿▓2▓▓▓▓▓▓▓▓▓▓▓▓▓▓················╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌  down 10m, exit 3
 perf     ╌╌╌▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌       left 12:22
`},
		{Drawing{Cols: 40, ASCII: true}, ` TIME of run 3, 12:00 to 12:24, a colum.
 # working  ? waiting  ~ limited  . idl.
 builder  _#5########x###5#######?????
 tester   _*#2#####.......____________
 perf     _##########~~~~~~~~~~~~~~~
`},
	} {
		got := strings.Join(l.Text(test.d), "\n") + "\n"
		if got != test.want {
			t.Errorf("%+v:\n%swant\n%s", test.d, got, test.want)
		}
	}
}

// Whatever happened, spans neither overlap nor leave the window, and no line is too wide.
func TestTimelineSound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := TimelineIn{From: timelineAt(10), To: timelineAt(50)}
		minute := 0.0
		for range rapid.IntRange(0, 60).Draw(t, "n") {
			minute += rapid.Float64Range(0, 3).Draw(t, "minute")
			in.Facts = append(in.Facts, Fact{
				At: timelineAt(minute), Who: rapid.SampledFrom([]string{"a", "b\x1b[2J", "c"}).Draw(t, "who"), ID: rapid.SampledFrom([]string{"a", "b\x1b[2J", "c", "1", "22"}).Draw(t, "id"),
				What: rapid.SampledFrom([]string{
					team.EventMemberAdded, team.EventMemberRemoved, team.EventMemberRenamed, team.EventMemberState, team.EventMemberActivity, team.EventTaskClaimed,
					team.EventTaskCompleted, team.EventTaskFailed, team.EventTaskReleased,
				}).Draw(t, "what"),
				Before: rapid.SampledFrom([]string{"a", "running", "working", "in_progress"}).Draw(t, "before"),
				After:  rapid.SampledFrom([]string{"c", "running", "exited", "working", "waiting(x)", "idle"}).Draw(t, "after"),
			})
		}
		if rapid.Bool().Draw(t, "down") {
			in.Down = timelineAt(rapid.Float64Range(0, 60).Draw(t, "since"))
		}
		l := NewTimeline(in)
		for _, lane := range l.Lanes {
			at := in.From
			for _, s := range lane.Spans {
				if s.From.Before(at) || s.To.After(in.To) || !s.To.After(s.From) {
					t.Fatalf("span %+v of %q after %s", s, lane.Member, at)
				}
				at = s.To
			}
			for _, s := range lane.Tasks {
				if s.From.Before(in.From) || s.To.After(in.To) || s.To.Before(s.From) {
					t.Fatalf("stint %+v", s)
				}
			}
		}
		cols := rapid.IntRange(1, 200).Draw(t, "cols")
		for _, line := range l.Text(Drawing{Cols: cols}) {
			if Width(line) > max(cols, 40) || strings.ContainsRune(line, '\x1b') {
				t.Fatalf("%d cells: %q", Width(line), line)
			}
		}
	})
}

func TestTimelineSVG(t *testing.T) {
	t.Parallel()
	l := NewTimeline(sampleTimeline())
	l.Lanes[0].Member = `<script>"&`
	got := l.SVG()
	wellFormed(t, got)
	for _, want := range []string{"&lt;script&gt;", "integration &lt;b&gt;", "tester: down, 10m00s from 12:14:00 (exit 3)", ">12:05<"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "<script") || got != l.SVG() {
		t.Error("not escaped, or not the same twice")
	}
	wellFormed(t, NewTimeline(TimelineIn{From: timelineAt(0), To: timelineAt(0)}).SVG())
}

// The trace is one that Perfetto takes: spans of a thread follow or contain each other.
func TestTimelineTrace(t *testing.T) {
	t.Parallel()
	in := sampleTimeline()
	in.Facts = append(in.Facts, Fact{At: timelineAt(22.5), Who: "builder", What: team.EventTaskClaimed, ID: "6"}) // beside 5
	data, err := NewTimeline(in).Trace()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		TraceEvents []struct {
			Name, Ph string
			TS, Dur  int64
			PID, TID int
			Args     map[string]any
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	ends, names := map[int]int64{}, map[string]string{}
	for _, e := range doc.TraceEvents {
		switch e.Ph {
		case "M":
			names[fmt.Sprint(e.Name, e.TID)] = fmt.Sprint(e.Args["name"], e.Args["sort_index"])
		case "X":
			if e.TS < ends[e.TID] || e.PID != 1 || e.Dur < 0 {
				t.Errorf("%+v begins before the end of the one before", e)
			}
			ends[e.TID] = e.TS + e.Dur
		default:
			t.Errorf("phase %q", e.Ph)
		}
	}
	if names["process_name0"] != "teamctl demo<nil>" || names["thread_name1"] != "builder<nil>" || names["thread_name2"] != "builder, tasks<nil>" || len(ends) != 6 {
		t.Errorf("threads %v, spans in %v", names, ends)
	}
}
