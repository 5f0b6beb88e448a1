package runs

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"millwright/api"
	"millwright/state"
)

// ListModelsResponse lists language models.
type ListModelsResponse struct {
	DefaultModelID string          `json:"default_model_id" doc:"The first model that the settings list for the default harness; empty when they list none"`
	Models         []LanguageModel `json:"models" nullable:"false" doc:"The models, by identifier"`
}

// LanguageModel is a language model that a run may ask for.
type LanguageModel struct {
	ID              string `json:"id" doc:"Its identifier: model_id of a run"`
	DisplayName     string `json:"display_name" doc:"The same as the identifier"`
	Provider        string `json:"provider" enum:"ANTHROPIC,GOOGLE,OPENAI,UNKNOWN" doc:"Its provider, judged by its identifier"`
	VisionSupported bool   `json:"vision_supported" doc:"Always false: not known"`
}

func (s *service) registerModels() {
	api.Handle(s.api, api.Explained(
		api.Filtered(
			api.Operation(http.MethodGet, "/agent/models", "listModels", state.RoleViewer, "List language models"),
		),
		"Lists the models in the settings of harnesses, and those that the applied definitions name. "+
			"A run may name others.",
	), s.models)
}

func (s *service) models(ctx context.Context, _ *struct{}) (ListModelsResponse, error) {
	definitions, err := s.definitions(ctx)
	if err != nil {
		return ListModelsResponse{}, err
	}

	var out ListModelsResponse
	var ids []string
	if s.Models != nil {
		out.DefaultModelID, ids = s.Models()
	}

	for _, d := range definitions {
		for _, e := range executions(d.Tree) {
			ids = append(ids, e.Model)
			if e.Harness != nil {
				ids = append(ids, e.Harness.Model)
			}
		}
	}

	slices.Sort(ids)
	out.Models = []LanguageModel{}
	for _, id := range slices.Compact(ids) {
		if id != "" {
			out.Models = append(out.Models, LanguageModel{ID: id, DisplayName: id, Provider: provider(id)})
		}
	}

	return out, nil
}

// provider returns the provider of a model, judged by its identifier.
func provider(id string) string {
	name := strings.ToLower(id[strings.LastIndex(id, "/")+1:]) // as in anthropic/claude-…
	for prefix, provider := range map[string]string{
		"claude": "ANTHROPIC", "gemini": "GOOGLE", "gpt": "OPENAI", "o1": "OPENAI", "o3": "OPENAI", "o4": "OPENAI",
	} {
		if strings.HasPrefix(name, prefix) {
			return provider
		}
	}

	return "UNKNOWN"
}
