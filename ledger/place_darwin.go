package ledger

import "syscall"

func born(_ string, st *syscall.Stat_t) int64 { return st.Birthtimespec.Nano() }
