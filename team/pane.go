package team

// PaneLayout selects where a terminal backend puts a teammate.
type PaneLayout string

// Layouts of panes. PaneAuto splits the user's window inside tmux and uses the team's
// private server outside.
const (
	PaneAuto    PaneLayout = ""
	PaneSplit   PaneLayout = "split"
	PaneWindow  PaneLayout = "window"
	PaneSession PaneLayout = "session"
)

// Place is where the request came from: the values of $TMUX and $TMUX_PANE of
// the requesting process, empty outside tmux.
type Place struct {
	Layout   PaneLayout `json:"layout,omitempty"`
	TMUX     string     `json:"tmux,omitempty"`
	TMUXPane string     `json:"tmuxPane,omitempty"`
}

// Pane is the content of pane.json: where a terminal backend put a generation.
// Ids of a tmux server are meaningless on another server, so its identity is
// recorded with them.
type Pane struct {
	Generation  string `json:"generation"`
	Backend     string `json:"backend"`
	Socket      string `json:"socket,omitempty"`
	ServerPID   int    `json:"serverPid,omitempty"`
	ServerStart uint64 `json:"serverStart,omitempty"`
	PaneID      string `json:"paneId"` // "%3", or "in-process"
	WindowID    string `json:"windowId,omitempty"`
	SessionID   string `json:"sessionId,omitempty"`
	Session     string `json:"session,omitempty"`
	Private     bool   `json:"private,omitempty"` // the server belongs to the team
}
