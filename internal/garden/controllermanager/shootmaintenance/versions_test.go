package shootmaintenance

import (
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

// versions parses versions like "1.2.3", with the suffix p for preview, d for deprecated or x for expired.
func versions(texts ...string) (all []gardencore.ExpirableVersion) {
	for _, text := range texts {
		v := gardencore.ExpirableVersion{Version: text}
		class := map[byte]gardencore.VersionClassification{'p': gardencore.ClassificationPreview, 'd': gardencore.ClassificationDeprecated}
		switch last := text[len(text)-1]; last {
		case 'p', 'd':
			v.Version, v.Classification = text[:len(text)-1], ptr.To(class[last])
		case 'x':
			v.Version, v.ExpirationDate = text[:len(text)-1], ptr.To(metav1.NewTime(kittest.Start.Add(-1)))
		}
		all = append(all, v)
	}
	return all
}

func TestChoose(t *testing.T) {
	for name, test := range map[string]struct {
		strategy strategy
		current  string
		offered  []string
		expired  bool
		want     string
		fails    bool
	}{
		"Kubernetes, patch": {kubernetesStrategy, "1.31.1", []string{"1.32.0", "1.31.3", "1.31.2"},
			false, "1.31.3", false},
		"Kubernetes, latest already": {kubernetesStrategy, "1.31.3", []string{"1.32.0", "1.31.3", "1.31.2"}, false, "", false},
		"Kubernetes, not to preview or expired": {kubernetesStrategy, "1.31.1", []string{"1.31.4p", "1.31.3x", "1.31.2"},
			false, "1.31.2", false},
		"Kubernetes, better not deprecated": {kubernetesStrategy, "1.31.1", []string{"1.31.3d", "1.31.2"}, false, "1.31.2", false},
		"Kubernetes, deprecated if need be": {kubernetesStrategy, "1.31.1", []string{"1.31.3d"}, false, "1.31.3", false},
		"Kubernetes, expired, to patch":     {kubernetesStrategy, "1.31.1", []string{"1.32.0", "1.31.3"}, true, "1.31.3", false},
		"Kubernetes, expired, to next minor": {
			kubernetesStrategy, "1.31.3", []string{"1.31.3x", "1.32.0", "1.32.4", "1.32.5x", "1.33.0"}, true, "1.32.4", false},
		"Kubernetes, expired, next minor expired": {
			kubernetesStrategy, "1.31.3", []string{"1.31.3x", "1.32.0x", "1.32.1x", "1.33.0"}, true, "1.32.1", false},
		"Kubernetes, expired, next minor missing": {kubernetesStrategy, "1.31.3", []string{"1.33.0"}, true, "", true},
		"Kubernetes, expired, next minor preview": {kubernetesStrategy, "1.31.3", []string{"1.32.0p"}, true, "", true},
		"image by patch": {imageStrategies["patch"], "1.1.0", []string{"1.1.2", "1.2.0"}, false, "1.1.2", false},
		"image by patch, expired": {imageStrategies["patch"], "1.1.2", []string{"1.4.0", "1.3.0", "1.3.1"},
			true, "1.3.1", false},
		"image by patch, expired, over an expired one": {imageStrategies["patch"], "1.1.2", []string{"1.2.0x", "1.3.0"}, true, "1.2.0", false},
		"image by patch, expired, next major only":     {imageStrategies["patch"], "1.1.2", []string{"2.0.0"}, true, "", true},
		"image by minor, patch first":                  {imageStrategies["minor"], "1.1.0", []string{"1.1.2", "1.2.0"}, false, "1.1.2", false},
		"image by minor": {imageStrategies["minor"], "1.1.2",
			[]string{"1.1.2", "1.2.0", "1.3.0", "2.0.0"}, false, "1.3.0", false},
		"image by minor, expired": {imageStrategies["minor"], "1.1.2", []string{"3.0.0", "2.0.0", "2.1.0"},
			true, "2.1.0", false},
		"image by major": {imageStrategies["major"], "1.1.2", []string{"1.2.0", "2.0.0", "3.0.0p"},
			false, "2.0.0", false},
		"image by major, expired":                       {imageStrategies["major"], "1.1.2", []string{"1.1.2x"}, true, "", true},
		"a version that cannot be read":                 {kubernetesStrategy, "latest", []string{"1.31.3"}, false, "", true},
		"image by major, with a version before release": {imageStrategies["major"], "1.1.2", []string{"1.1.1"}, false, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := offered(versions(test.offered...), kittest.Start)
			if err != nil {
				t.Fatal(err)
			}
			got, err := test.strategy.choose(test.current, all, test.expired)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	if _, err := offered(versions("latest"), kittest.Start); err == nil {
		t.Error("a cloud profile with a version that is none")
	}
}
