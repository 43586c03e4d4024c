internal import CofferCore
internal import Synchronization

extension Store {
  /// Loads the items. Until that succeeds, tries again after a pause, and then without a prompt.
  func loadInBackground(after pause: Duration = .zero) {
    let store = current()
    let next = pause == .zero ? (store.source ?? DefaultBackend.source).retryPause : min(pause * 2, .seconds(60))
    Task { [weak store] in
      do { try await Task.sleep(for: pause) } catch { return }
      let isLoaded = await CallThreads.shared.run(for: store) { [weak store] in
        do throws(SecretError) { try store?.loadIfNeeded(mayPrompt: pause == .zero) } catch { return false }
        return true
      }
      if !isLoaded { store?.loadInBackground(after: next) }
    }
  }

  /// Loads the items if they are not loaded. Publishes an error that is new.
  func loadIfNeeded(mayPrompt: Bool = true) throws(SecretError) {
    if state.withLock({ $0.isLoaded }) { return }
    try inOrder { () throws(SecretError) in
      do throws(SecretError) { try loadNow(mayPrompt: mayPrompt) } catch {
        publish { state in
          if state.loadError == error { return [] }
          state.loadError = error
          return [StoreEvent(operation: .initialized, items: [], error: error)]
        }
        throw error
      }
    }
  }

  /// Loads the items if they are not loaded. Call it in ``inOrder(_:)``.
  func loadNow(mayPrompt: Bool = true) throws(SecretError) {
    if state.withLock({ $0.isLoaded }) { return }
    let backend = try resolve()
    // The watch begins before the load, so that it reports every change after the load.
    watch(backend)
    let contents = try read(mayPrompt ? backend : backend.withoutPrompts)
    publish { state in
      state.contents = contents
      (state.isLoaded, state.loadError) = (true, nil)
      state.lastOrder = Self.lastOrder(of: contents)
      return [StoreEvent(operation: .loaded, items: contents.items)]
    }
  }

  func resolve() throws(SecretError) -> any SecretBackend { try (source ?? DefaultBackend.source).resolve() }

  /// Reads one secret, or all secrets of the service.
  private func read(
    _ backend: any SecretBackend, only identifier: SecretIdentifier? = nil
  ) throws(SecretError) -> StoreContents<Item> {
    var failures: [SecretIdentifier: SecretError] = [:]
    var entries: [StoreContents<Item>.Entry] = []
    func add(_ secret: Secret) {
      do throws(SecretError) { entries.append(try entry(secret)) } catch {
        failures[secret.identifier] = error
      }
    }
    if let identifier {
      if let secret = try backend.secret(identifier) { add(secret) }
    } else {
      try backend.forEachSecret(inService: storage.service, add)
    }
    return StoreContents(entries, failures: failures)
  }

  /// The highest place that this library may have given to an item, or 0. Larger numbers come from other programs and
  /// do not count, because new items need places above the result.
  private static func lastOrder(of contents: StoreContents<Item>) -> Int64 {
    contents.entries.reversed().lazy.compactMap { Int64($0.key.order) }.first { $0 < .max / 2 } ?? 0
  }

  /// Decodes one secret. Throws `.decodingFailed` if it is not an item.
  private func entry(_ secret: Secret) throws(SecretError) -> StoreContents<Item>.Entry {
    do {
      return .init(
        key: StoreKey(order: secret.metadata.attributes[Self.orderAttribute] ?? "", identifier: secret.identifier),
        item: try coder.decode(Item.self, from: secret.value))
    } catch {
      throw SecretError(
        .decodingFailed, "The stored item does not decode as \(Item.self).",
        advice: "A later release may have stored it. Otherwise remove the secret.", identifier: secret.identifier)
    }
  }

  // MARK: Changes by others

  private func watch(_ backend: any SecretBackend) {
    guard backend.features.contains(.changes), state.withLock({ $0.watch == nil }) else { return }
    let changes = backend.changes()
    let (service, own, retryPause) = (
      storage.service, ObjectIdentifier(self), (source ?? DefaultBackend.source).retryPause
    )
    let task = Task { [weak self] in
      for await change in changes where change.origin != own {
        if let identifier = change.identifier, !identifier.service.utf8.elementsEqual(service.utf8) { continue }
        // If that fails, for example because the store is busy, everything is read again until it succeeds.
        var (identifier, pause) = (change.identifier, retryPause)
        while await CallThreads.shared.run(
          for: backend, { [weak self, identifier] in self?.readAgain(identifier) == false })
        {
          do { try await Task.sleep(for: pause) } catch { return }
          (identifier, pause) = (nil, min(pause * 2, .seconds(60)))
        }
      }
    }
    state.withLock { $0.watch = task }
  }

  /// Returns `false` if the backend cannot be read now, and will not report when it can.
  private func readAgain(_ identifier: SecretIdentifier?) -> Bool {
    do throws(SecretError) {
      try inOrder { () throws(SecretError) in
        if state.withLock({ $0.isLoaded }) { try reload(identifier) }
      }
    } catch { return error.code == .locked }
    return true
  }

  /// Reads one secret, or all secrets of the service, and reports the differences. Call it in ``inOrder(_:)``.
  func reload(_ identifier: SecretIdentifier?) throws(SecretError) {
    adopt(try read(resolve().withoutPrompts, only: identifier), onlyAbout: identifier)
  }

  /// Updates the items in memory to those found in the backend, and reports the differences.
  private func adopt(_ found: StoreContents<Item>, onlyAbout identifier: SecretIdentifier?) {
    // For one secret, only its entry: a second reference to all entries would make the changes below copy them.
    let known = state.withLock { state in identifier.map { state.contents.only($0) } ?? state.contents }
    let gone = known.entries.filter { found.entry($0.identifier) == nil }
    let new = found.entries.filter { entry in
      known.entry(entry.identifier).map { $0.item != entry.item || $0.key != entry.key } ?? true
    }
    publish { state in
      state.contents.remove(Set(gone.map(\.identifier)))
      for entry in new { state.contents.put(entry) }
      if let identifier {
        state.contents.failures[identifier] = found.failures[identifier]
      } else {
        state.contents.failures = found.failures
      }
      state.lastOrder = max(state.lastOrder, Self.lastOrder(of: state.contents))
      var events: [StoreEvent<Item>] = []
      if !gone.isEmpty { events.append(StoreEvent(operation: .remove, items: gone.map(\.item))) }
      if !new.isEmpty { events.append(StoreEvent(operation: .insert, items: new.map(\.item))) }
      return events
    }
  }
}
