//go:build !linux

package main

import "time"

type memory struct{ resident, private float64 }

func memoryOf(int) (memory, error) { return memory{}, errNoUsage }

type activity struct {
	busy  time.Duration
	wakes int
}

func activityOf([]int) (activity, error) { return activity{}, errNoUsage }

func (a activity) since(b activity) activity { return activity{a.busy - b.busy, a.wakes - b.wakes} }

func childrenOf(int, string) ([]int, error) { return nil, errNoUsage }
