//! What Argo CD has `kustomize edit` do to a kustomization.
