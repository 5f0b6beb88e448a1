package main

import "time"

type options struct {
	rounds, connections, size, automations, slow int
	events, soak, replicas                       int
	github                                       bool
	duration                                     time.Duration
	postgres, only, profile, join                string
}

const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
