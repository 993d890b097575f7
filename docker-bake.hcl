# The image of a release, for both architectures, with its base by digest, an SBOM and its provenance:
#
#   NODE_DIGEST=$(docker buildx imagetools inspect node:24-bookworm-slim --format '{{.Manifest.Digest}}') \
#   REVISION=$(git rev-parse HEAD) IMAGE=registry.example.com/posthorn docker buildx bake --push
#
# It needs a builder of its own (`docker buildx create --use`): the default one builds for one architecture.

variable "IMAGE" {
  default = "posthorn"
}

variable "VERSION" {
  default = "1.0.0-rc.1"
}

variable "REVISION" {
  default = "unknown"
}

# sha256:… of the base image. Without it the tag is used, and what is built today and tomorrow may differ.
variable "NODE_DIGEST" {
  default = ""
}

group "default" {
  targets = ["posthorn"]
}

target "posthorn" {
  context    = "."
  dockerfile = "deploy/Dockerfile"
  platforms  = ["linux/amd64", "linux/arm64"]
  tags       = ["${IMAGE}:${VERSION}"]
  args = {
    NODE_IMAGE = NODE_DIGEST == "" ? "node:24-bookworm-slim" : "node:24-bookworm-slim@${NODE_DIGEST}"
    VERSION    = VERSION
    REVISION   = REVISION
  }
  attest = ["type=sbom", "type=provenance,mode=max"]
}
