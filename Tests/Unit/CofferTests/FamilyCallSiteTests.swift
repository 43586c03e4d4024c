import Coffer
import CofferCore
import CofferTestSupport
import Foundation
import Observation
import Testing

// What clients of other packages write, with the changes that Documentation/Recipes/migrating.md names. The main test
// is that it compiles.

private let scope = SecretScope(service: "tests", backend: MemoryBackend())

private struct Entry: Codable, Sendable, Equatable, Identifiable {
  var id: String
  var text = ""
}

// MARK: Boutique: a store behind a property

@Observable
private final class Diary {
  @ObservationIgnored
  @Stored var entries: [Entry]

  init(store: Store<Entry>) {
    self._entries = Stored(in: store)
  }

  func fetch() async throws -> [Entry] {
    let fetched = [Entry(id: "a"), Entry(id: "b")]
    try await self.$entries.insert(fetched)
    return fetched
  }
  func add(_ entry: Entry) async throws { try await self.$entries.insert(entry) }
  func remove(_ entry: Entry) async throws { try await self.$entries.remove(entry) }
  func clear() async throws { try await self.$entries.removeAll() }

  func monitor(_ events: AsyncStream<StoreEvent<Entry>>, upTo last: String) async -> [String] {
    var seen: [String] = []
    for await event in events {
      switch event.operation {
      case .initialized: seen.append("initialized")
      case .loaded: seen.append("loaded \(event.items.count)")
      case .insert: seen.append("inserted \(event.items.count)")
      case .remove: seen.append("removed \(event.items.count)")
      }
      if seen.last == last { break }
    }
    return seen
  }
}

private struct Garment: Codable, Sendable, Equatable {
  var name: String
}

private final class Wardrobe: Sendable {
  static let shared = Store<Entry>(storage: scope)
  let store: Store<Garment>

  init(_ storage: SecretScope) async throws {
    store = try await Store(storage: storage, cacheIdentifier: \.name)
  }

  func change() async throws -> [String] {
    let coat = Garment(name: "coat")
    try await store.insert(coat)
    try await store.remove(coat)
    try await store.removeAll()
    try await store
      .removeAll()
      .insert(coat)
      .insert([Garment(name: "hat"), Garment(name: "scarf")])
      .remove(Garment(name: "hat"))
      .run()
    try await store.itemsHaveLoaded()
    return store.items.map(\.name)
  }
}

// MARK: Boutique: single values

private enum Theme: String, Codable, Sendable { case light, dark }

@MainActor
@Observable
private final class SoundPreferences {
  @ObservationIgnored
  @StoredValue(key: "hasSoundEffects", in: scope)
  public var hasSoundEffects = false

  @ObservationIgnored
  @StoredValue(key: "theme", in: scope)
  public var theme = Theme.light

  @ObservationIgnored
  @StoredValue(key: "lastOpened", in: scope)
  public var lastOpened: Date? = nil
}

@MainActor
@Observable
private final class AllPreferences {
  var sound = SoundPreferences()
  let haptics = StoredValue(key: "hasHaptics", default: false, service: "tests", backend: scope.backend)
}

// MARK: PersistedPropertyWrapper

private enum Colour: Int, Codable, Sendable {
  case red, blue
}

private struct ColourSettings {
  @StoredValue(key: "colour", in: scope)
  var colour = Colour.blue

  @StoredValue(key: "age", in: scope)
  var age: Int?
}

private struct AppSettings: Codable, Sendable {
  var welcome = "Hello"
  var launchCount = 0

  static let current = StoredValue(
    key: "appSettings", default: AppSettings(), service: "tests", backend: scope.backend)
}

@Suite(.timeLimit(.minutes(30))) struct FamilyCallSiteTests {
  /// In an `async` function the initializer that waits for the items would be chosen.
  private func diary() -> Diary {
    Diary(store: Store<Entry>(storage: SecretScope(service: "diary", backend: MemoryBackend())))
  }

  @Test func aStoreBehindAProperty() async throws {
    let diary = diary()
    try await diary.$entries.itemsHaveLoaded()
    let events = diary.$entries.events
    _ = try await diary.fetch()
    try await diary.add(Entry(id: "c"))
    try await diary.remove(Entry(id: "a"))
    #expect(diary.entries.map(\.id) == ["b", "c"])
    let seen = await diary.monitor(events, upTo: "removed 1")
    #expect(seen == ["loaded 0", "inserted 2", "inserted 1", "removed 1"])
    try await diary.clear()
    #expect(diary.entries.isEmpty)
  }

  @Test func aStoreThatIsMadeAsynchronously() async throws {
    let wardrobe = try await Wardrobe(SecretScope(service: "wardrobe", backend: MemoryBackend()))
    #expect(try await wardrobe.change() == ["coat", "scarf"])
    try await Wardrobe.shared.itemsHaveLoaded()
  }

  @Test @MainActor func valuesWithADefault() async throws {
    let preferences = AllPreferences()
    let stream = preferences.sound.$theme.values
    try await preferences.sound.$theme.set(.dark)
    try await preferences.sound.$lastOpened.set(.now)
    try await preferences.sound.$hasSoundEffects.toggle()
    try await preferences.haptics.toggle()
    var seen: [Theme] = []
    for await theme in stream {
      seen.append(theme)
      if theme == .dark { break }
    }
    #expect(seen == [.light, .dark])
    #expect(preferences.sound.hasSoundEffects && preferences.haptics.wrappedValue)
    #expect(preferences.sound.lastOpened != nil)
    try await preferences.sound.$theme.reset()
    #expect(preferences.sound.theme == .light)
  }

  @Test func persistedProperties() throws {
    let settings = ColourSettings()
    #expect(settings.colour == .blue && settings.age == nil)
    try settings.$colour.set(.red)
    try settings.$age.set(7)
    #expect(settings.colour == .red && settings.age == 7)
    try settings.$age.set(nil)
    #expect(try scope.backend?.lookUp(SecretIdentifier(service: "tests", account: "age")) == nil)
    try AppSettings.current.update { $0.launchCount += 1 }
    #expect(AppSettings.current.wrappedValue.launchCount == 1)
    #expect(AppSettings.current.key == "appSettings" && AppSettings.current.defaultValue.launchCount == 0)
  }
}
