"""What is appended to the manifest of a copied package."""

KEEP = """
var kept: Set<String> = [%s]
var count = 0
while count < kept.count {
  count = kept.count
  for target in package.targets where kept.contains(target.name) {
    for dependency in target.dependencies {
      switch dependency {
      case .targetItem(let name, _), .byNameItem(let name, _): kept.insert(name)
      default: break
      }
    }
  }
}
package.targets.removeAll { !kept.contains($0.name) }
"""


def keep(targets):
    """Leaves out of the build what these targets do not depend on."""
    return KEEP % ", ".join(f'"{name}"' for name in targets)
