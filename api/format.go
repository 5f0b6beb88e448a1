package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// jsonFormat decodes bodies like huma's own format. It also refuses invalid UTF-8, accepts numbers of any
// size in unknown fields, and describes errors without Go's terms.
func jsonFormat() huma.Format {
	return huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: func(body []byte, v any) error {
		if !utf8.Valid(body) {
			return errors.New("not valid UTF-8")
		}

		err := json.Unmarshal(body, v)
		var kind *json.UnmarshalTypeError
		switch _, whole := v.(*any); {
		case !errors.As(err, &kind):
			return err
		case whole: // a number beyond float64 counts as null
			return nil
		case kind.Type.Kind() == reflect.Int:
			return fmt.Errorf("%s: want a whole number", kind.Field)
		}

		return fmt.Errorf("%s: does not fit", kind.Field)
	}}
}
