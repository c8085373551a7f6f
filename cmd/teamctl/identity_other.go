//go:build !linux

package main

import "github.com/teamctl/teamctl/team"

// startedBy cannot be told here: no process shows its environment to others.
func startedBy(team.Layout) string { return "" }

// heldBy cannot either.
func heldBy(team.Layout) string { return "" }
