// Package tmux runs teammates in tmux panes. The pane's process is the shim
// (backends/shim), never a shell, and nothing is typed to start it. The package
// is not an API for other modules.
//
// # Which server
//
// Inside tmux (Place.TMUX, verified to be a living server that has the user's
// pane) the user's window is split, or a window is created in their session:
// only pane options and options of that one window are set there, they are
// restored with the last teammate, and no client stays attached. Otherwise the
// team has a server of its own: a socket in the team's runtime directory and a
// generated configuration; the user's is never loaded. Its first pane is the
// lead's.
//
// # Sources of truth
//
// tmux only displays. Whether an agent is alive comes from the shim by pidfd
// and from exit.json: tmux before 3.6 loses the death of a pane's process,
// kill-pane notifies nobody, and a pane may be reported dead while its process
// is alive. A new server numbers its ids (%3) from the start again, so none is
// used before the server's pid and start time have been compared.
//
// # Queries
//
// The private server is queried through one control-mode client per supervisor:
// requests are pipelined, and answers matched by their guards. The user's
// server is queried by one tmux process per request: a control client would be
// a visible client of their session. In control mode a newline ends a command,
// so every argument is quoted (quote) and data is passed through a buffer,
// never through keys. Launches that wait for a place in the private server's
// windows are placed together: three queries for all of them, and three more
// for each further window.
package tmux
