package hook

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// session has the used fields of sessions/PID.json, in which Claude Code describes itself.
type session struct {
	PID        int    `json:"pid"`
	Session    string `json:"sessionId"`
	Status     string `json:"status"`
	WaitingFor string `json:"waitingFor"`
	UpdatedAt  int64  `json:"statusUpdatedAt"`
}

// endWithin is how long the hook at the end of a turn may take to report how the turn ended.
const endWithin = 5 * time.Second

// howItEnded waits until a hook has reported how a turn ended: the status comes first and does not
// say that the turn failed. No hook reports an interrupted turn. It returns false if the status
// has changed meanwhile.
func howItEnded(ctx context.Context, f courier.Facts, written <-chan struct{}) bool {
	hook, leave, err := f.Listen(courier.SeenPath(f.Bundle))
	if err != nil {
		return true
	}
	defer leave()
	late := time.NewTimer(endWithin)
	defer late.Stop()
	for {
		if last, _, err := courier.ReadSeen(f.Bundle, f.Generation); err != nil || last.Activity != team.Working {
			return true
		}
		select {
		case <-hook:
		case <-written:
			return false
		case <-late.C:
			return true
		case <-ctx.Done():
			return true
		}
	}
}

// watchSession reports the status that Claude Code writes for an ordinary session; it shows
// interrupts, which no hook reports.
func watchSession(ctx context.Context, f courier.Facts, file string, r courier.Report) {
	written, leave, err := f.Listen(file)
	for err != nil { // no session has ever written one in this directory: try again after each hook
		hook, done, herr := f.Listen(courier.SeenPath(f.Bundle))
		if herr != nil {
			return
		}
		if written, leave, err = f.Listen(file); err != nil { // the directory is still missing
			select {
			case <-hook:
			case <-ctx.Done():
			}
		}
		done()
		if ctx.Err() != nil {
			if err == nil {
				leave()
			}
			return
		}
	}
	defer leave()
	var last session
	for {
		var s session
		data, err := regular.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		fresh := err == nil && s.PID == f.PID && s != last
		if fresh && s.Status == "idle" && !howItEnded(ctx, f, written) {
			continue
		}
		if fresh {
			last = s
			o := team.Observation{Tier: team.TierChannel, At: time.Now(), Source: "sessions/" + filepath.Base(file), Evidence: []string{"status " + s.Status}}
			if s.UpdatedAt > 0 {
				o.At = time.UnixMilli(s.UpdatedAt)
			}
			switch s.Status {
			case "idle":
				o.Activity = team.Idle
			case "busy":
				o.Activity = team.Working
			case "waiting":
				o.Activity, o.For = team.Waiting, team.WaitPermission
				o.Evidence[0] += ": " + s.WaitingFor
			}
			if o.Activity != "" {
				r(o)
			}
		}
		select {
		case <-written:
		case <-ctx.Done():
			return
		}
	}
}
