//go:build unix

package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	acp "github.com/coder/acp-go-sdk"
)

// configure has the session use the model and the reasoning level of the run.
func (s *session) configure(
	ctx context.Context,
	models *acp.SessionModelState,
	options []acp.SessionConfigOption,
) {
	if s.task.Model != "" {
		var err error
		if options, err = s.selectModel(ctx, models, options); err != nil {
			s.given.lose("model_id", err.Error())
			s.task.Model = "" // the session uses another one
		}
	}

	if s.task.Reasoning != "" {
		_, err := s.choose(ctx, options, acp.SessionConfigOptionCategoryThoughtLevel, s.task.Reasoning)
		if err != nil {
			s.given.lose("reasoning_level", err.Error())
		}
	}
}

// selectModel selects the model of the run: by an option of the session or, with an older agent, by the
// request for that. It returns the options of the session from then on.
func (s *session) selectModel(
	ctx context.Context,
	models *acp.SessionModelState,
	options []acp.SessionConfigOption,
) ([]acp.SessionConfigOption, error) {
	if models == nil {
		return s.choose(ctx, options, acp.SessionConfigOptionCategoryModel, s.task.Model)
	}
	if string(models.CurrentModelId) == s.task.Model {
		return options, nil
	}

	_, err := s.conn.UnstableSetSessionModel(ctx, acp.UnstableSetSessionModelRequest{
		SessionId: s.id, ModelId: acp.UnstableModelId(s.task.Model),
	})
	if err != nil {
		return options, fmt.Errorf("the agent refuses the model: %s", reason(err))
	}
	return options, nil
}

// choose sets the option of a category, and returns the options of the session from then on.
func (s *session) choose(
	ctx context.Context,
	options []acp.SessionConfigOption,
	category acp.SessionConfigOptionCategory,
	to string,
) ([]acp.SessionConfigOption, error) {
	i := slices.IndexFunc(options, func(o acp.SessionConfigOption) bool {
		return o.Select != nil && o.Select.Category != nil && *o.Select.Category == category
	})
	if i < 0 {
		return options, errors.New("the agent offers no choice of it: give the agent's own flag in args")
	}
	option := options[i].Select
	if string(option.CurrentValue) == to {
		return options, nil
	}

	chosen, err := s.conn.SetSessionConfigOption(ctx, acp.SetSessionConfigOptionRequest{
		ValueId: &acp.SetSessionConfigOptionValueId{
			SessionId: s.id, ConfigId: option.Id, Value: acp.SessionConfigValueId(to),
		},
	})
	if err != nil {
		return options, fmt.Errorf("the agent refuses %q: %s", to, reason(err))
	}
	return chosen.ConfigOptions, nil
}
