package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// jsonFormat reads bodies as huma's own format does, but refuses what is not UTF-8, lets numbers of unknown
// fields be of any size, and says what is wrong in words that do not speak of Go.
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
		case whole: // a number beyond float64, which counts as null; the rest was read
			return nil
		case kind.Type.Kind() == reflect.Int:
			return fmt.Errorf("%s: want a whole number", kind.Field)
		}

		return fmt.Errorf("%s: does not fit", kind.Field)
	}}
}
