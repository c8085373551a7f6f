// Package control is the team's supervisor as a process: its unix socket, its start
// on demand, and the client.
//
// There is one supervisor per team, by a kernel lock (supervisor.lock, flock) that it
// holds for life. A client dials its socket. If nothing answers and the client may
// start one, it takes the starting lock, dials once more, starts "teamctl supervise"
// in a session of its own and waits for a line on a pipe that reports that the socket
// listens. The supervisor takes the kernel lock before it touches the socket, so a
// loser never unlinks the winner's.
//
// The socket speaks HTTP/1.1 with JSON bodies; the routes are one literal map in
// server.go. It is in a 0700 directory, has mode 0600, and accepts only peers of our
// own uid. An error is the JSON of team.Error with a status that follows its code.
package control
