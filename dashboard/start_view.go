package dashboard

import "millwright/state"

type startView struct {
	Tone, Headline, Summary string
	Findings                []finding
	Notices                 []Notice
	Factories               []factoryCard
	Deliveries              chart
	Runs                    chart
	Requests, Started       int64 // deliveries and runs in the last 24 hours
	Recent                  []deliveryRow
	LatestRuns              []state.Run
	Pulls                   map[string][]state.Artifact // of LatestRuns
	Queue                   state.QueueStats
	Use                     useView // of all runs, with the budgets of all factories
}
