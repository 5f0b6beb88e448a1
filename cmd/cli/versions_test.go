package cli

import (
	"testing"
)

func TestCompareVersions(t *testing.T) {
	ordered := []string{"v1alpha1", "v1alpha2", "v1beta1", "v1", "v2alpha1", "v2"}
	programs := []string{"v0.9.0", "v1.0.0-rc1", "v1.0.0-rc2", "v1.0.0", "v1.0.10", "v1.2.0", "v10.0.0"}
	for _, list := range [][]string{ordered, programs} {
		for i, a := range list {
			for j, b := range list {
				if got := compareVersions(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
					t.Errorf("%s against %s: %d", a, b, got)
				}
			}
		}
	}
	for _, odd := range []string{"", "dev", "dev-0123456789ab", "v1.2.3-14-gabcdef0", "abcdef0"} {
		if compareVersions("v1.0.0", odd) != 0 || compareVersions(odd, "v1.0.0") != 0 {
			t.Errorf("%q has an order", odd)
		}
	}
}
