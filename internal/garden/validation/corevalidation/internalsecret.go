package corevalidation

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

// ValidateInternalSecret checks a new internal secret by the rules for Secrets.
func ValidateInternalSecret(secret *gardencore.InternalSecret) field.ErrorList {
	dataPath := field.NewPath("data")
	return slices.Concat(
		apivalidation.ValidateObjectMeta(&secret.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata")),
		validateData(secret.Data, dataPath),
		validateSecretType(secret, dataPath),
	)
}

// validateData checks the keys and the size of the data of a Secret or a ConfigMap.
func validateData[T ~string | ~[]byte](data map[string]T, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(data)) {
		errs = append(errs, InvalidEach(path.Key(key), key, validation.IsConfigMapKey(key))...)
		size += len(data[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(path, "", corev1.MaxSecretSize))
	}
	return errs
}

// ValidateInternalSecretUpdate checks a changed internal secret: its type must not change, and neither must its data
// once it is immutable.
func ValidateInternalSecretUpdate(newSecret, oldSecret *gardencore.InternalSecret) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&newSecret.ObjectMeta, &oldSecret.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, immutable(newSecret.Type, oldSecret.Type, field.NewPath("type"))...)
	if ptr.Deref(oldSecret.Immutable, false) {
		const detail = "must not change once immutable is set"
		errs = append(errs, ForbiddenIf(!ptr.Deref(newSecret.Immutable, false), field.NewPath("immutable"), detail)...)
		errs = append(errs, ForbiddenIf(!reflect.DeepEqual(newSecret.Data, oldSecret.Data), field.NewPath("data"), detail)...)
	}
	return append(errs, ValidateInternalSecret(newSecret)...)
}

// validateSecretType checks that the secret has the keys or annotations that its type requires.
func validateSecretType(secret *gardencore.InternalSecret, dataPath *field.Path) field.ErrorList {
	switch secret.Type {
	case corev1.SecretTypeServiceAccountToken:
		return Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey),
			secret.Annotations[corev1.ServiceAccountNameKey])
	case corev1.SecretTypeDockercfg:
		return validateJSONKey(secret.Data, corev1.DockerConfigKey, dataPath)
	case corev1.SecretTypeDockerConfigJson:
		return validateJSONKey(secret.Data, corev1.DockerConfigJsonKey, dataPath)
	case corev1.SecretTypeBasicAuth: // one of the keys is enough, and may be empty
		username, password := requiredKey(secret.Data, corev1.BasicAuthUsernameKey, dataPath),
			requiredKey(secret.Data, corev1.BasicAuthPasswordKey, dataPath)
		if username == nil || password == nil {
			return nil
		}
		return append(username, password...)
	case corev1.SecretTypeSSHAuth:
		return Required(dataPath.Key(corev1.SSHAuthPrivateKey), string(secret.Data[corev1.SSHAuthPrivateKey]))
	case corev1.SecretTypeTLS:
		return append(requiredKey(secret.Data, corev1.TLSCertKey, dataPath), requiredKey(secret.Data, corev1.TLSPrivateKeyKey, dataPath)...)
	}
	return nil
}

func requiredKey(data map[string][]byte, key string, path *field.Path) field.ErrorList {
	_, exists := data[key]
	return RequiredIf(!exists, path.Key(key), "must exist for secrets of this type")
}

func validateJSONKey(data map[string][]byte, key string, path *field.Path) field.ErrorList {
	if errs := requiredKey(data, key, path); errs != nil {
		return errs
	}
	err := json.Unmarshal(data[key], &map[string]any{})
	return InvalidIf(err != nil, path.Key(key), "<redacted>", fmt.Sprintf("must be a JSON object: %v", err))
}
