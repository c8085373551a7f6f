package supervisor

// lookForJump tells the services if the wall clock has jumped. Timers stand still while the machine
// sleeps and do not follow a clock that is set, so those that wait for a time of day must be armed
// again. The loop looks before each message, and has one from time to time while a member lives:
// the renewal of its leases.
func (s *Supervisor) lookForJump() {
	jumped, set, now := s.clock.Jumped(s.moment)
	if !jumped {
		return
	}
	s.moment = now
	s.log.Info("the clock has jumped", "set", set)
	for _, one := range s.services {
		one.Jumped(set)
	}
}
