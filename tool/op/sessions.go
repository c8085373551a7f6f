package op

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Oneshot is the name of the operation that waits for a child.
const Oneshot = "subagent_spawn_oneshot"

// sessionOps are what sessions of the built-in kind do with each other.
func sessionOps() []Op {
	gate := []tool.Operation{tool.OpSessions}
	return []Op{
		with(Op{Name: "session_spawn", Verb: "session spawn", Gates: gate, Long: true}, sessionSpawn),
		with(Op{Name: "session_send", Verb: "session send", Gates: gate}, sessionSend),
		with(Op{Name: "session_list", Verb: "session ls", ReadOnly: true, Idempotent: true}, sessionList),
		with(Op{Name: "session_history", Verb: "session history", ReadOnly: true, Idempotent: true}, sessionHistory),
		with(Op{Name: "session_stop", Verb: "session stop", Gates: gate, Destructive: true, Idempotent: true}, sessionStop),
		with(Op{Name: "session_wake", Verb: "session wake", Gates: gate}, sessionWake),
		with(Op{Name: Oneshot, Verb: "session oneshot", Gates: gate, Long: true}, sessionOneshot),
	}
}

// SessionSpawnIn is a child session to be.
type SessionSpawnIn struct {
	TeamRef
	AgentID string          `json:"agent_id,omitempty" jsonschema:"Id or name of its agent spec, or a part of one that no other has; that of its parent where it is left out."`
	Parent  string          `json:"parent_session_key,omitempty" jsonschema:"Key of its parent, or name of the member whose own session that is; the caller's session where it is left out."`
	Label   string          `json:"label,omitempty" jsonschema:"What it is for, in a few words: its results carry it."`
	Tags    []string        `json:"tags,omitempty" jsonschema:"Its results carry them."`
	Meta    json.RawMessage `json:"meta,omitempty" jsonschema:"Kept with the session."`
}

// SessionSpawnOut is a new child.
type SessionSpawnOut struct {
	SessionKey string `json:"session_key"`
	Owner      string `json:"owner_session_key"`
	AgentID    string `json:"agent_id"`
	Depth      int    `json:"depth"`
}

func sessionSpawn(ctx context.Context, s *Session, in SessionSpawnIn) (SessionSpawnOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (SessionSpawnOut, error) {
		child, err := t.SpawnSession(ctx, c, tool.ChildIn{Parent: in.Parent, Agent: in.AgentID, Label: in.Label, Tags: in.Tags, Meta: in.Meta})
		return SessionSpawnOut{child.Key, child.Owner, child.ActiveAgentID, child.Depth}, err
	})
}

// SessionSendIn is a text for a session.
type SessionSendIn struct {
	TeamRef
	SessionKey string          `json:"session_key" jsonschema:"Key of a child, or of another session of the caller's member."`
	Message    string          `json:"message" jsonschema:"At most 100 KB."`
	Channel    string          `json:"channel,omitempty" jsonschema:"internal, which is the default: what sessions tell each other is on no other channel."`
	Deliver    bool            `json:"deliver,omitempty" jsonschema:"false, which is the default: nothing of it is delivered outside the team."`
	Key        string          `json:"idempotency_key,omitempty" jsonschema:"The same key of the same sender is taken once, and answers what became of the first."`
	Provenance json.RawMessage `json:"provenance,omitempty" jsonschema:"Kept beside who has sent it."`
	Meta       json.RawMessage `json:"meta_json,omitempty" jsonschema:"Kept with the entry."`
}

func sessionSend(ctx context.Context, s *Session, in SessionSendIn) (tool.Injected, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (tool.Injected, error) {
		if in.Deliver || in.Channel != "" && in.Channel != team.ChannelInternal {
			return tool.Injected{}, team.Errorf(team.CodeInvalid, "what sessions tell each other is on the channel %s and is not delivered", team.ChannelInternal).
				WithReason(team.ReasonInput).WithHint("leave out channel and deliver")
		}
		return t.SendSession(ctx, c, tool.InjectIn{Session: in.SessionKey, Message: in.Message, Key: in.Key, Meta: in.Meta, Provenance: in.Provenance})
	})
}

// SessionListIn says which sessions to list.
type SessionListIn struct {
	TeamRef
	All bool `json:"all,omitempty" jsonschema:"Closed ones too."`
}

// SessionListOut are sessions, each parent before its children.
type SessionListOut struct {
	Sessions []tool.SessionInfo `json:"sessions"`
}

func sessionList(ctx context.Context, s *Session, in SessionListIn) (SessionListOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (SessionListOut, error) {
		list, err := t.Sessions(ctx, c, in.All)
		return SessionListOut{list}, err
	})
}

// SessionHistoryIn says which part of a conversation to read.
type SessionHistoryIn struct {
	TeamRef
	SessionKey string `json:"session_key" jsonschema:"Key of the session, or name of the member whose own it is."`
	Before     int64  `json:"before,omitempty" jsonschema:"Only entries with a smaller number; the newest where it is left out."`
	Limit      int    `json:"limit,omitempty" jsonschema:"At most this many entries; as many as 100 KB have room for where it is left out."`
}

func sessionHistory(ctx context.Context, s *Session, in SessionHistoryIn) (tool.History, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (tool.History, error) {
		return t.SessionHistory(ctx, c, tool.HistoryIn{Session: in.SessionKey, Before: in.Before, Limit: in.Limit})
	})
}

// SessionStopIn names a session.
type SessionStopIn struct {
	TeamRef
	SessionKey string `json:"session_key" jsonschema:"Key of a child."`
}

// SessionStopOut is a session that was stopped.
type SessionStopOut struct {
	SessionKey string `json:"session_key"`
	State      string `json:"state" jsonschema:"closed."`
}

func sessionStop(ctx context.Context, s *Session, in SessionStopIn) (SessionStopOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (SessionStopOut, error) {
		stopped, err := t.StopSession(ctx, c, in.SessionKey)
		return SessionStopOut{stopped.Key, string(stopped.State)}, err
	})
}

// SessionWakeIn asks for a turn at a time.
type SessionWakeIn struct {
	TeamRef
	After      string `json:"after" jsonschema:"1m to 24h, such as 90s, 10m or 2h30m; a number is seconds."`
	Text       string `json:"text" jsonschema:"With which the turn begins."`
	SessionKey string `json:"session_key,omitempty" jsonschema:"Key of a child; the caller's own session where it is left out."`
}

func sessionWake(ctx context.Context, s *Session, in SessionWakeIn) (tool.Wake, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (tool.Wake, error) {
		after, err := duration("after", in.After)
		if err != nil {
			return tool.Wake{}, err
		}
		return t.WakeSession(ctx, c, tool.WakeIn{Session: in.SessionKey, After: after, Text: in.Text})
	})
}

// duration reads a length of time; "" is none.
func duration(name, s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	if n, err := strconv.Atoi(s); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, team.Errorf(team.CodeInvalid, "%s %q is not a length of time", name, s).WithReason(team.ReasonInput).WithHint("90s, 10m, 2h30m")
	}
	return d, nil
}

// SessionOneshotIn is a task for a child that is needed once.
type SessionOneshotIn struct {
	TeamRef
	AgentID string `json:"agent_id,omitempty" jsonschema:"Id or name of its agent spec, or a part of one that no other has; that of its parent where it is left out."`
	Task    string `json:"task" jsonschema:"What it is told, at most 100 KB."`
	Label   string `json:"label,omitempty" jsonschema:"What it is for, in a few words."`
	Timeout string `json:"timeout,omitempty" jsonschema:"Its turn is cancelled after this time, such as 10m; it is not limited where it is left out."`
	Parent  string `json:"parent_session_key,omitempty" jsonschema:"Key of its parent, or name of the member whose own session that is; the caller's session where it is left out."`
}

func sessionOneshot(ctx context.Context, s *Session, in SessionOneshotIn) (tool.Oneshot, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (tool.Oneshot, error) {
		limit, err := duration("timeout", in.Timeout)
		if err != nil {
			return tool.Oneshot{Artifacts: []team.Artifact{}}, err
		}
		return t.Oneshot(ctx, c, tool.OneshotIn{Parent: in.Parent, Agent: in.AgentID, Task: in.Task, Label: in.Label, Timeout: limit})
	})
}
