CREATE EVENT TRIGGER tidegate_catalog ON ddl_command_end
    EXECUTE FUNCTION tidegate_catalog.announce();
