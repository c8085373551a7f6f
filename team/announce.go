package team

// AnnounceKind is the kind of an Announce.
const AnnounceKind = "subagent_announce"

// TurnTimeout is why a turn is cancelled that has taken longer than its parent waits.
const TurnTimeout = "timeout"

// TurnCrashes is why a turn has failed whose process ended again and again.
const TurnCrashes = "crashes"

// Announce is what a session is told about the end of a turn of its child: the meta_json of
// the announce. What is unknown is null.
type Announce struct {
	Internal         bool           `json:"internal" jsonschema:"Always true: it is delivered to nobody outside the team."`
	Kind             string         `json:"kind"`
	TraceID          string         `json:"trace_id" jsonschema:"The turn that ended."`
	Hop              int            `json:"hop" jsonschema:"Injections that led to this announce, itself included."`
	IdempotencyKey   string         `json:"idempotency_key" jsonschema:"announce:PARENT:CHILD:RUN. The parent is told of each once."`
	SourceAgentID    string         `json:"source_agent_id"`
	SourceAgentName  string         `json:"source_agent_name"`
	SourceSessionKey string         `json:"source_session_key"`
	SourceRunID      string         `json:"source_run_id" jsonschema:"The turn that ended."`
	Task             AnnouncedTask  `json:"task"`
	Stats            AnnouncedStats `json:"stats"`
	Result           AnnouncedEnd   `json:"result"`
}

// AnnouncedTask is what the child was to do.
type AnnouncedTask struct {
	Label  string   `json:"label"`
	Prompt string   `json:"prompt" jsonschema:"What it was told, at most 2000 characters of it."`
	Tags   []string `json:"tags"`
}

// AnnouncedStats is what a turn took; nil is unknown.
type AnnouncedStats struct {
	DurationMS *int64   `json:"duration_ms"`
	Tokens     *int64   `json:"tokens"`
	CostUSD    *float64 `json:"cost_usd"`
}

// AnnounceStatus is how a turn ended, as the runtime saw it.
type AnnounceStatus string

// Statuses of an announce.
const (
	AnnouncedOK      AnnounceStatus = "ok"
	AnnouncedError   AnnounceStatus = "error"   // it failed or was cancelled
	AnnouncedTimeout AnnounceStatus = "timeout" // nobody waited any longer
	AnnouncedUnknown AnnounceStatus = "unknown" // its process was killed, again and again
)

// AnnounceStatuses lists them.
func AnnounceStatuses() []AnnounceStatus {
	return []AnnounceStatus{AnnouncedOK, AnnouncedError, AnnouncedTimeout, AnnouncedUnknown}
}

// AnnounceStatusOf is how a turn ended that has this state, for the reason, or for that of
// its cancellation, which a turn that was cancelled before it began has as its reason only.
func AnnounceStatusOf(s TurnState, reason, cancel string) AnnounceStatus {
	switch {
	case s == TurnDone:
		return AnnouncedOK
	case s == TurnCancelled && (cancel == TurnTimeout || reason == TurnTimeout):
		return AnnouncedTimeout
	case s == TurnFailed && reason == TurnCrashes:
		return AnnouncedUnknown
	}
	return AnnouncedError
}

// MaxSummary is how many characters the summary of an announce has at most.
const MaxSummary = 800

// AnnouncedEnd is what came of a turn.
type AnnouncedEnd struct {
	Status    AnnounceStatus `json:"status"`
	Summary   string         `json:"summary" jsonschema:"The end of the turn unless it is ok, then the last answer, or the last result of a tool where that is empty: at most 800 characters."`
	Artifacts []Artifact     `json:"artifacts"`
}

// ArtifactKind is what an artifact is.
type ArtifactKind string

// Kinds of artifact.
const (
	ArtifactFile   ArtifactKind = "file"
	ArtifactCommit ArtifactKind = "commit"
)

// Artifact is something that a turn has left behind: a file that its calls have changed, or
// a commit that appeared while it ran.
type Artifact struct {
	Kind ArtifactKind `json:"kind"`
	Path string       `json:"path,omitempty" jsonschema:"Of a file, as the call named it."`
	SHA  string       `json:"sha,omitempty" jsonschema:"Of a commit."`
}

// TurnReport is the result of a turn, as its process reports it.
type TurnReport struct {
	Commits []string `json:"commits,omitempty"` // that appeared while it ran, the oldest first
}
