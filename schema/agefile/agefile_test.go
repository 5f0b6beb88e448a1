package agefile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"

	"millwright/schema/agefile"
)

const (
	factory = "fac_01h455vb4pex5vsknk084sn02q"
	other   = "fac_01h455vb4pex5vsknk084sn03q"
	value   = "s3cret-value-1f9a"
)

func newIdentity(t *testing.T) agefile.Identity {
	t.Helper()
	id, err := agefile.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	if id, err = agefile.ParseIdentity(id.Key()); err != nil {
		t.Fatal(err)
	}
	return id
}

// encrypt returns a file of age, without armor, to the recipients.
func encrypt(t *testing.T, text string, recipients ...string) []byte {
	t.Helper()
	var to []age.Recipient
	for _, r := range recipients {
		parsed, err := age.ParseX25519Recipient(r)
		if err != nil {
			t.Fatal(err)
		}
		to = append(to, parsed)
	}

	var out bytes.Buffer
	w, err := age.Encrypt(&out, to...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	return out.Bytes()
}

func TestOpen(t *testing.T) {
	id := newIdentity(t)
	for _, value := range []string{value, "two\nlines\n", "\x00\xff", strings.Repeat("x", agefile.MaxValue)} {
		file, err := agefile.Seal(id.Recipient(), factory, "TOKEN", []byte(value))
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range [][]byte{
			file,
			bytes.ReplaceAll(file, []byte("\n"), []byte("\r\n")), // checked out on Windows
			encrypt(t, factory+" TOKEN\n"+value, newIdentity(t).Recipient(), id.Recipient()),
		} {
			got, err := id.Open(factory, "TOKEN", form)
			if err != nil || string(got) != value {
				t.Errorf("%d bytes opened as %d bytes: %v", len(value), len(got), err)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	id := newIdentity(t)
	good := encrypt(t, factory+" TOKEN\n"+value, id.Recipient())
	changed := func(at int) []byte {
		file := bytes.Clone(good)
		file[at] ^= 1
		return file
	}
	many := make([]string, 21)
	for i := range many {
		many[i] = id.Recipient()
	}

	tests := map[string]struct {
		file []byte
		want string
	}{
		"in clear":              {[]byte(value), "not a file of age"},
		"empty":                 {nil, "not a file of age"},
		"another recipient":     {encrypt(t, factory+" TOKEN\n"+value, newIdentity(t).Recipient()), "another recipient"},
		"another factory":       {encrypt(t, other+" TOKEN\n"+value, id.Recipient()), "another factory"},
		"another name":          {encrypt(t, factory+" OTHER\n"+value, id.Recipient()), `sealed as "OTHER"`},
		"no first line":         {encrypt(t, value+"\n", id.Recipient()), "does not begin"},
		"value on first line":   {encrypt(t, factory+" TOKEN "+value+"\n", id.Recipient()), "does not begin"},
		"no value":              {encrypt(t, factory+" TOKEN\n", id.Recipient()), "the value is empty"},
		"no line end":           {encrypt(t, factory+" TOKEN", id.Recipient()), "the value is empty"},
		"value too long":        {encrypt(t, factory+" TOKEN\n"+strings.Repeat("x", agefile.MaxValue+1), id.Recipient()), "more than 64 KiB"},
		"value far too long":    {encrypt(t, factory+" TOKEN\n"+strings.Repeat("x", agefile.MaxValue+9999), id.Recipient()), "more than 64 KiB"},
		"1 MB":                  {encrypt(t, factory+" TOKEN\n"+strings.Repeat("x", 1<<20), id.Recipient()), "more than 128 KiB"},
		"many recipients":       {encrypt(t, factory+" TOKEN\n"+value, many...), "more than 20 recipients"},
		"changed in the header": {changed(len("age-encryption.org/v1\n-> X25519 abc")), "damaged"},
		"changed in the text":   {changed(len(good) - 20), "damaged"},
		"cut":                   {good[:len(good)-1], "damaged"},
		"cut header":            {good[:40], "damaged"},
		"longer":                {append(bytes.Clone(good), 0), "damaged"},
		"broken armor":          {[]byte(armor.Header + "\n" + value + "\n" + armor.Footer + "\n"), "ASCII armor"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := id.Open(factory, "TOKEN", test.file)
			var wrong *agefile.Error
			if !errors.As(err, &wrong) || got != nil {
				t.Fatalf("opened: %v", err)
			}
			if !strings.Contains(wrong.Text, test.want) || wrong.Hint == "" {
				t.Errorf("got %q, want %q", wrong.Text, test.want)
			}
			if strings.Contains(wrong.Text+wrong.Hint, value) {
				t.Error("the problem shows the value")
			}
		})
	}
}

// TestEveryByte changes each byte of a file in turn.
func TestEveryByte(t *testing.T) {
	id := newIdentity(t)
	good := encrypt(t, factory+" TOKEN\n"+value, id.Recipient())
	for i := range good {
		file := bytes.Clone(good)
		file[i] ^= 0x20
		if _, err := id.Open(factory, "TOKEN", file); err == nil {
			t.Errorf("a file with another byte %d opens", i)
		}
	}
}

func TestSealRefused(t *testing.T) {
	id := newIdentity(t)
	for _, args := range [][4]string{
		{"age1nonsense", factory, "TOKEN", value},
		{id.Recipient(), "default", "TOKEN", value},
		{id.Recipient(), factory, "1TOKEN", value},
		{id.Recipient(), factory, "TOKEN", ""},
		{id.Recipient(), factory, "TOKEN", strings.Repeat("x", agefile.MaxValue+1)},
	} {
		if _, err := agefile.Seal(args[0], args[1], args[2], []byte(args[3])); err == nil {
			t.Errorf("sealed %.40q", args)
		} else if args[3] != "" && strings.Contains(err.Error(), args[3]) {
			t.Error("the error shows the value")
		}
	}
}

// TestHidden prints an identity in every way.
func TestHidden(t *testing.T) {
	id := newIdentity(t)
	printed := fmt.Sprintf("%v %+v %#v %s %q %x", id, id, id, id, id, id) + fmt.Sprintf("%v %#v", &id, struct{ I agefile.Identity }{id})
	if strings.Contains(printed, "AGE-SECRET-KEY") || !strings.Contains(id.Key(), "AGE-SECRET-KEY") {
		t.Errorf("printed as %s", printed)
	}
	if _, err := agefile.ParseIdentity(strings.Replace(id.Key(), "1", "2", 1)); err == nil || strings.Contains(err.Error(), id.Key()[20:]) {
		t.Errorf("error %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	id, err := agefile.NewIdentity()
	if err != nil {
		f.Fatal(err)
	}
	sealed, err := agefile.Seal(id.Recipient(), factory, "TOKEN", []byte(value))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add([]byte("age-encryption.org/v1\n-> X25519 a\n--- \n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		var wrong *agefile.Error
		if _, err := id.Open(factory, "TOKEN", file); err != nil && !errors.As(err, &wrong) {
			t.Errorf("error %v", err)
		}
	})
}
