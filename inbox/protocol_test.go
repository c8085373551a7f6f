package inbox

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

// frames has one frame of each kind with all keys, and one with the fewest.
var frames = []struct {
	text  string
	frame Frame
}{
	{`{"type":"shutdown_request","requestId":"shutdown-1@w","from":"team-lead","reason":"all <done>","timestamp":"t"}`,
		ShutdownRequest{"shutdown-1@w", "team-lead", "all <done>", "t"}},
	{`{"type":"shutdown_request","requestId":"r","from":"team-lead","timestamp":"t"}`,
		ShutdownRequest{RequestID: "r", From: "team-lead", Timestamp: "t"}},
	{`{"type":"shutdown_approved","requestId":"r","from":"w","timestamp":"t","paneId":"%99","backendType":"tmux"}`,
		ShutdownApproved{"r", "w", "t", "%99", "tmux"}},
	{`{"type":"shutdown_approved","requestId":"r","from":"w","timestamp":"t"}`,
		ShutdownApproved{RequestID: "r", From: "w", Timestamp: "t"}},
	{`{"type":"shutdown_rejected","requestId":"r","from":"w","reason":"mid-task","timestamp":"t"}`,
		ShutdownRejected{"r", "w", "mid-task", "t"}},
	{`{"type":"idle_notification","from":"w","timestamp":"t"}`, IdleNotification{From: "w", Timestamp: "t"}},
	{`{"type":"idle_notification","from":"w","timestamp":"t","idleReason":"available","result":"turn over"}`,
		IdleNotification{From: "w", Timestamp: "t", IdleReason: IdleAvailable, Result: "turn over"}},
	{`{"type":"idle_notification","from":"w","timestamp":"t","idleReason":"failed","summary":"s","completedTaskId":"1","completedStatus":"failed","failureReason":"f"}`,
		IdleNotification{"w", "t", IdleFailed, "s", "1", "failed", "f", ""}},
	{`{"type":"task_assignment","taskId":"1","subject":"S","description":"D","assignedBy":"w","timestamp":"t"}`,
		TaskAssignment{"1", "S", "D", "w", "t"}},
	{`{"type":"task_completed","from":"w","taskId":"1","taskSubject":"S","timestamp":"t"}`,
		TaskCompleted{"w", "1", "S", "t", nil}},
	{`{"type":"permission_request","request_id":"perm-1","agent_id":"w","tool_name":"Bash","tool_use_id":"u","description":"d","input":{"command":"a > b && c"},"permission_suggestions":[{"type":"setMode"}]}`,
		PermissionRequest{"perm-1", "w", "Bash", "u", "d", json.RawMessage(`{"command":"a > b && c"}`), json.RawMessage(`[{"type":"setMode"}]`)}},
	{`{"type":"permission_response","request_id":"perm-1","approve":true,"subtype":"success","response":{}}`,
		PermissionResponse{RequestID: "perm-1", Approve: true}},
	{`{"type":"permission_response","request_id":"perm-1","approve":true,"subtype":"success","response":{"updated_input":{"a":1},"permission_updates":[]}}`,
		PermissionResponse{RequestID: "perm-1", Approve: true, UpdatedInput: json.RawMessage(`{"a":1}`), PermissionUpdates: json.RawMessage(`[]`)}},
	{`{"type":"permission_response","request_id":"perm-1","approve":false,"subtype":"error","error":"a < b"}`,
		PermissionResponse{RequestID: "perm-1", Error: "a < b"}},
	{`{"type":"plan_approval_request","from":"p","timestamp":"t","planFilePath":"/p.md","planContent":"# Plan\n1. step\n","requestId":"plan_approval-1@p@eps"}`,
		PlanApprovalRequest{"p", "t", "/p.md", "# Plan\n1. step\n", "plan_approval-1@p@eps"}},
	{`{"type":"plan_approval_response","requestId":"r","approved":true,"timestamp":"t","permissionMode":"acceptEdits"}`,
		PlanApprovalResponse{RequestID: "r", Approved: true, Timestamp: "t", PermissionMode: "acceptEdits"}},
	{`{"type":"plan_approval_response","requestId":"r","approved":false,"feedback":"add tests","timestamp":"t"}`,
		PlanApprovalResponse{RequestID: "r", Feedback: "add tests", Timestamp: "t"}},
	{`{"type":"teammate_terminated","message":"w has shut down."}`, TeammateTerminated{Message: "w has shut down."}},
}

func TestFrames(t *testing.T) {
	t.Parallel()
	kinds := map[team.Kind]bool{}
	for _, tc := range frames {
		f, ok := Parse(tc.text)
		if !ok {
			t.Errorf("not recognised: %s", tc.text)
			continue
		}
		if diff := cmp.Diff(tc.frame, f); diff != "" {
			t.Errorf("%s\n%s", tc.text, diff)
		}
		if text, err := Encode(tc.frame); err != nil || text != tc.text {
			t.Errorf("encoded\n%s, %v, want\n%s", text, err, tc.text)
		}
		if strings.Contains(tc.text, `"requestId"`) || strings.Contains(tc.text, `"request_id"`) {
			if f.Correlation() == "" {
				t.Errorf("no correlation: %s", tc.text)
			}
		} else if f.Correlation() != "" {
			t.Errorf("correlation of %s", tc.text)
		}
		if d := Describe(f); d == "" || strings.Contains(d, "%!") {
			t.Errorf("%s described as %q", f.Kind(), d)
		}
		kinds[f.Kind()] = true
	}
	for _, ft := range frameTypes {
		if !kinds[ft.kind] {
			t.Errorf("no test for %s", ft.kind)
		}
	}
}

func TestOtherShapesAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Frame{
		`{"type":"permission_response","request_id":"p","approve":true}`:                               PermissionResponse{RequestID: "p", Approve: true},
		`{"type":"permission_response","request_id":"p","approve":false}`:                              PermissionResponse{RequestID: "p"},
		`{"type":"permission_response","request_id":"p","subtype":"success","response":{}}`:            PermissionResponse{RequestID: "p", Approve: true},
		`{"type":"permission_response","request_id":"p","subtype":"success"}`:                          PermissionResponse{RequestID: "p", Approve: true},
		`{"type":"permission_response","request_id":"p","subtype":"error","error":"no"}`:               PermissionResponse{RequestID: "p", Error: "no"},
		"  \n{\"new\":[1],\"from\":\"w\",\"timestamp\":\"t\",\"type\":\"idle_notification\"}\n":        IdleNotification{From: "w", Timestamp: "t"},
		`{"type":"idle_notification","From":"x","from":"w","FROM":"y","timestamp":"t","summary":null}`: IdleNotification{From: "w", Timestamp: "t"},
	} {
		f, ok := Parse(text)
		if diff := cmp.Diff(want, f); !ok || diff != "" {
			t.Errorf("%s: %v\n%s", text, ok, diff)
		}
	}
}

func TestPlainTextStaysPlain(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "hello", "{", "{}", "[]", "null", `"x"`, `{"type":5}`, `{"type":"unknown"}`, `{"type":"message"}`,
		`{"type":"shutdown_request"}`,
		`{"type":"shutdown_request","requestId":"r","from":"x"}`,
		`{"type":"shutdown_request","requestId":5,"from":"x","timestamp":"t"}`,
		`{"type":"shutdown_request","requestId":null,"from":"x","timestamp":"t"}`,
		`{"Type":"shutdown_request","requestId":"r","from":"x","timestamp":"t"}`,
		`{"type":"shutdown_request","requestid":"r","from":"x","timestamp":"t"}`,
		`{"type":"shutdown_request","requestId":"r","from":"x","timestamp":"t"} and more`,
		`please see {"type":"shutdown_request","requestId":"r","from":"x","timestamp":"t"}`,
		`{"type":"permission_response","request_id":"p"}`,
		`{"type":"permission_response","request_id":"p","approve":"yes"}`,
		`{"type":"permission_response","request_id":"p","subtype":"maybe"}`,
		`{"type":"permission_response","request_id":"p","subtype":"error","approve":true}`,
		`{"type":"plan_approval_response","requestId":"r","approved":"true","timestamp":"t"}`,
	} {
		if f, ok := Parse(text); ok || f != nil {
			t.Errorf("%s was taken for %#v", text, f)
		}
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1770649832458)
	if got := NewRequestID("shutdown", "config-analyst", now, nil); got != "shutdown-1770649832458@config-analyst" {
		t.Error(got)
	}
	re := regexp.MustCompile(`^plan_approval-\d{13}@p@eps$`)
	used := map[string]bool{}
	for range 5 {
		id := NewRequestID("plan_approval", "p@eps", now, func(id string) bool { return used[id] })
		if used[id] || !re.MatchString(id) {
			t.Errorf("id %q", id)
		}
		used[id] = true
	}
}

func TestFrameEntry(t *testing.T) {
	t.Parallel()
	e, err := FrameEntry("w", "blue", IdleNotification{From: "w", Timestamp: "t"}, time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	want := Entry{From: "w", Color: "blue", Text: `{"type":"idle_notification","from":"w","timestamp":"t"}`, Timestamp: "1970-01-01T00:00:00.000Z"}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Error(diff)
	}
	if _, err := FrameEntry("w", "", PermissionRequest{Input: json.RawMessage("{")}, time.Now()); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("bad input: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, tc := range frames {
		f.Add(tc.text)
	}
	f.Add(`{"type":"permission_response","request_id":"p","approve":true}`)
	f.Add(`{"type":"idle_notification","type":"x"}`)
	f.Fuzz(func(t *testing.T, text string) {
		frame, ok := Parse(text)
		if !ok {
			return
		}
		once, err := Encode(frame)
		if err != nil {
			t.Fatalf("%#v: %v", frame, err)
		}
		again, ok := Parse(once)
		if !ok {
			t.Fatalf("wrote what it does not read: %s", once)
		}
		if twice, err := Encode(again); err != nil || twice != once {
			t.Fatalf("not stable: %s, %s, %v", once, twice, err)
		}
		_ = Describe(frame)
	})
}
