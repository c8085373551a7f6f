package ledger

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/teamctl/teamctl/team"
)

const (
	sqlReportAnswer = `SELECT content FROM session_entries WHERE session = ? AND job = ? AND kind = 'assistant' ORDER BY seq DESC LIMIT 1`
	sqlReportSaid   = `SELECT content FROM session_entries WHERE session = ? AND job = ? AND kind = 'assistant' AND trim(content) <> '' ORDER BY seq DESC LIMIT 1`
	// What a tool has found: no failure, and no word of ours in place of a result.
	sqlReportTool = `SELECT e.content FROM session_entries e JOIN tool_calls c ON c.session = e.session AND c.entry = e.seq
		WHERE e.session = ? AND e.job = ? AND e.kind = 'tool_result' AND c.state = 'ended'
		AND coalesce(json_extract(e.meta_json, '$.failed'), 0) = 0 AND trim(e.content) NOT IN ('', '(no output)', '` + ResultSkipped + `', '` + ResultEnded + `')
		ORDER BY e.seq DESC LIMIT 1`
	sqlReportPrompt = `SELECT content FROM session_entries WHERE session = ?1 AND kind = 'user' AND seq <
		coalesce((SELECT min(seq) FROM session_entries WHERE session = ?1 AND job = ?2 AND kind = 'assistant'), 9223372036854775807) ORDER BY seq DESC LIMIT 1`
	sqlReportFiles = `SELECT DISTINCT p.value FROM session_entries e, json_each(e.meta_json, '$.paths') p
		WHERE e.session = ? AND e.job = ? AND e.kind = 'tool_result' AND e.meta_json IS NOT NULL AND p.atom IS NOT NULL ORDER BY e.seq`
	sqlReportStarted = `SELECT started_at, coalesce(usage, ''), coalesce(result, '') FROM turn_jobs WHERE id = ?`
)

// Bounds of an announce.
const (
	maxPrompt    = 2000
	maxArtifacts = 50
)

// AnnounceKey is the key of the announce of a turn.
func AnnounceKey(parent, child string, turn int64) string {
	return fmt.Sprintf("announce:%s:%s:%d", parent, child, turn)
}

// report is the announce of a turn that has ended, as the ledger knows it.
func (t *tx) report(parent, child Session, j TurnJob) (a team.Announce, err error) {
	run := itoa(j.ID)
	a = team.Announce{
		Internal: true, Kind: team.AnnounceKind, TraceID: run, Hop: j.Hop + 1, IdempotencyKey: AnnounceKey(parent.Key, child.Key, j.ID),
		SourceAgentID: child.ActiveAgentID, SourceSessionKey: child.Key, SourceRunID: run,
		Task: team.AnnouncedTask{Label: child.Label, Tags: tagsOf(child.Routing)},
	}
	if a.SourceAgentName, _, err = value[string](t, sqlSpecName, child.ActiveAgentID); err != nil {
		return a, err
	}
	if a.SourceAgentName == "" {
		a.SourceAgentName = child.ActiveAgentID
	}
	prompt, _, err := value[string](t, sqlReportPrompt, child.Key, j.ID)
	if err != nil {
		return a, err
	}
	a.Task.Prompt = CutAtWord(prompt, maxPrompt)
	if a.Result, err = t.reportEnd(j); err != nil {
		return a, err
	}
	a.Stats, err = t.reportStats(j)
	return a, err
}

// tagsOf are the tags that a session was spawned with.
func tagsOf(routing json.RawMessage) []string {
	var r struct {
		Tags []string `json:"tags"`
	}
	if len(routing) == 0 || json.Unmarshal(routing, &r) != nil || r.Tags == nil {
		return []string{}
	}
	return r.Tags
}

// reportStats is what a turn took. What a killed process has used is unknown, so of a turn
// with several starts the sum is, as it is of one that was ended amid a request.
func (t *tx) reportStats(j TurnJob) (s team.AnnouncedStats, err error) {
	var started int64
	var usage, result string
	if _, err = t.one(sqlReportStarted, func(r *sql.Rows) error { return r.Scan(&started, &usage, &result) }, j.ID); err != nil {
		return s, err
	}
	if started > 0 {
		took := t.now - started
		s.DurationMS = &took
	}
	var u team.Usage
	if j.Attempt != 1 || j.Reason == team.TurnCrashes || usage == "" || json.Unmarshal([]byte(usage), &u) != nil || u.Unknown > 0 {
		return s, nil
	}
	tokens := u.Tokens()
	s.Tokens = &tokens
	if u.CostKnown {
		s.CostUSD = &u.CostUSD
	}
	return s, nil
}

// reportEnd is how a turn ended and what it left.
func (t *tx) reportEnd(j TurnJob) (r team.AnnouncedEnd, err error) {
	var text string
	for _, q := range []string{sqlReportAnswer, sqlReportTool, sqlReportSaid} {
		if text, _, err = value[string](t, q, j.Session, j.ID); err != nil {
			return r, err
		}
		if text = strings.TrimSpace(text); text != "" {
			break
		}
	}
	r.Status = team.AnnounceStatusOf(j.State, j.Reason, j.Cancel)
	if r.Status != team.AnnouncedOK { // the parent is to know it whatever the child has said
		end := string(j.State)
		if why := cmp.Or(j.Cancel, j.Reason); r.Status == team.AnnouncedTimeout {
			end = team.TurnTimeout
		} else if why != "" {
			end += ": " + why
		}
		text = strings.TrimSpace(end + "\n" + text)
	}
	r.Summary = CutAtWord(text, team.MaxSummary)
	r.Artifacts = []team.Artifact{}
	files, err := column[string](t, sqlReportFiles, j.Session, j.ID)
	if err != nil {
		return r, err
	}
	for _, f := range files {
		r.Artifacts = append(r.Artifacts, team.Artifact{Kind: team.ArtifactFile, Path: f})
	}
	var done team.TurnReport
	if len(j.Result) > 0 && json.Unmarshal(j.Result, &done) == nil {
		for _, sha := range done.Commits {
			r.Artifacts = append(r.Artifacts, team.Artifact{Kind: team.ArtifactCommit, SHA: sha})
		}
	}
	r.Artifacts = r.Artifacts[:min(len(r.Artifacts), maxArtifacts)]
	return r, nil
}

// CutAtWord cuts a text to at most n characters, behind a word where there is one.
func CutAtWord(text string, n int) string {
	rs := []rune(text)
	if len(rs) <= n {
		return text
	}
	end := n - 1 // for the mark
	for i := end; i > end/2; i-- {
		if unicode.IsSpace(rs[i]) {
			end = i
			break
		}
	}
	return strings.TrimRightFunc(string(rs[:end]), unicode.IsSpace) + "…"
}
