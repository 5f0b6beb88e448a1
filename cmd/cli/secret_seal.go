package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"millwright/schema"
	"millwright/schema/agefile"
	"millwright/state"
)

// sealFlags choose the place and the recipient of a sealed secret.
type sealFlags struct {
	dir       string
	recipient string
	stdout    bool
}

func secretSeal(s Streams, c *Client) *cobra.Command {
	var to sealFlags
	cmd := &cobra.Command{
		Use:   "seal SECRET",
		Short: "Encrypt a secret for a factory's definition",
		Long: `Reads the value as secret set does: from standard input, or at a prompt. Encrypts it to the
recipient of the factory and writes it to secrets/SECRET.age in the definition at --dir.
When the server applies that file, the factory has the secret, and no other factory does. To
rotate it, seal the new value and commit.

The command asks the server for the recipient. With --recipient and the UID of the factory it
needs no server: millwright secret recipient shows both.`,
		Example: `  millwright secret seal DEPLOY_TOKEN < token.txt
  millwright secret seal DEPLOY_TOKEN --dir factory --recipient age1... --factory fac_...
  millwright secret seal DEPLOY_TOKEN --stdout | millwright file put secrets/DEPLOY_TOKEN.age`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.seal(cmd.Context(), s, args[0], to)
		},
	}

	addFactoryFlag(cmd, c)
	cmd.Flags().StringVar(&to.dir, "dir", ".", "the `DIRECTORY` of the definition")
	cmd.Flags().StringVar(&to.recipient, "recipient", "", "the factory's `RECIPIENT`; asks no server")
	cmd.Flags().BoolVar(&to.stdout, "stdout", false, "write the file to standard output")
	Exclusive(cmd, "dir", "stdout")
	return cmd
}

func (c *Client) seal(ctx context.Context, s Streams, name string, to sealFlags) error {
	if !agefile.ValidName(name) || len(name) > schema.MaxNameBytes {
		return Usagef("%q: want up to %d letters, digits and _, the first no digit", clean(name), schema.MaxNameBytes)
	}
	if !to.stdout && !schema.HoldsDefinition(os.DirFS(to.dir), ".") {
		return Usagef("no definition is in %s: name its directory with --dir", clean(to.dir))
	}

	factory := factoryRef{UID: c.factory, Recipient: to.recipient}
	switch {
	case to.recipient == "":
		var err error
		if factory, err = c.one(ctx); err != nil {
			return err
		}
	case !state.ValidID(state.PrefixFactory, c.factory):
		return Usagef("--recipient needs the UID of the factory: --factory fac_...")
	}

	value, err := readSecret(s, name)
	if err != nil {
		return err
	}

	file, err := agefile.Seal(factory.Recipient, factory.UID, name, []byte(value))
	if err != nil {
		return Usagef("%s: %w", name, err)
	}
	if to.stdout {
		_, err := s.Out.Write(file)
		return err
	}

	path := filepath.Join(to.dir, "secrets", name+".age")
	if err := writeSealed(path, file); err != nil {
		return &Exit{ExitUnreachable, err}
	}

	of := cmp.Or(factory.Name, factory.UID)
	fmt.Fprintf(s.Out, "%s is sealed for factory %s: commit it\n", filepath.ToSlash(path), of)
	return nil
}

// writeSealed writes a sealed secret all at once, in place of one that is there.
func writeSealed(path string, file []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}

	tmp, err := os.CreateTemp(filepath.Dir(path), ".millwright-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone already when all went well

	_, err = tmp.Write(file)
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err != nil {
		return err
	}

	return os.Rename(tmp.Name(), path)
}

func secretRecipient(s Streams, c *Client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recipient",
		Short: "Show the recipient to which secrets for a factory's definition are encrypted",
		Long: `Prints the UID and the recipient of the factory, a public key of age. With both, secret seal
works without the server.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := c.one(cmd.Context())
			if err != nil {
				return err
			}

			return rows(s.Out, "FACTORY UID RECIPIENT", [][]string{{f.Name, f.UID, f.Recipient}})
		},
	}

	addFactoryFlag(cmd, c)
	return cmd
}

func addFactoryFlag(cmd *cobra.Command, c *Client) {
	cmd.Flags().StringVar(&c.factory, "factory", "", "name or UID of the `FACTORY`; needed if there are several")
}
